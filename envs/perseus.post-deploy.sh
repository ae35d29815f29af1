# Snakemake runs it in the environment that it has made of perseus.yaml. The pin is that of triton.txt.
python -m pip install --no-deps nvidia-pytriton==0.7.0
