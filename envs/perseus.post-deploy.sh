# Snakemake runs this script in the environment that it creates from perseus.yaml. triton.txt has the same version.
python -m pip install --no-deps nvidia-pytriton==0.7.0
