# Snakemake runs this script in the environment that it creates from perseus.yaml. The version must be
# the same as in triton.txt.
python -m pip install --no-deps nvidia-pytriton==0.7.0
