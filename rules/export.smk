"""Export networks of torchvision and timm to ONNX, and prepare the ONNX files of the user.

inputs:   a state_dict file or an ONNX file with its weights (if configured), images (if configured)
outputs:  results/<study>/models/<model>/{model.onnx,reference.npz,check.json}; if a server needs
          them, also model.fp16.onnx, model.int8.onnx or model.pt2; if clients send images, also
          pictures.npz; if images have labels, also labelled.npz
steps:    build the network, export it, run the exported file under ONNX Runtime, compare the
          responses with the responses of torch
"""


rule export:
    """Export a classification network of torchvision to ONNX. Also write the responses of torch to
    sample images, and the relative error of the responses of ONNX Runtime."""
    input:
        weights=lambda w: files.weights(STUDY, w.model),
        images=lambda w: STUDY.images[w.model],
    output:
        model=f"{RESULTS}/models/{{model}}/model.onnx",
        reference=f"{RESULTS}/models/{{model}}/reference.npz",
        check=f"{RESULTS}/models/{{model}}/check.json",
    log:
        f"{LOGS}/export/{{model}}.log",
    wildcard_constraints:
        model=any_of(name for name, of in STUDY.models.items() if of.is_classifier),
    cache: IS_CACHED
    priority: of_models(urgency)
    conda:
        "../envs/perseus.yaml"
    resources:
        mem_mb=4000,
    params:
        task=lambda w: planning.export_task(STUDY, w.model).plain(),
        code=SOURCES.fingerprint(["export.py"]),
        versions=lambda w: {
            **provenance.export_versions(provenance.EXPORT, STUDY.images[w.model]),
            **contents(files.weights(STUDY, w.model)),
        },
    message:
        "Exporting {wildcards.model} to ONNX"
    script:
        "../scripts/export.py"


rule export_network:
    """Export a network of timm, a detector or a segmenter to ONNX. Also write the responses of ONNX
    Runtime to sample inputs, and their relative error compared with torch."""
    input:
        weights=lambda w: files.weights(STUDY, w.model),
        inputs=lambda w: files.samples(STUDY, w.model),
        images=lambda w: STUDY.images[w.model],
    output:
        model=f"{RESULTS}/models/{{model}}/model.onnx",
        reference=f"{RESULTS}/models/{{model}}/reference.npz",
        check=f"{RESULTS}/models/{{model}}/check.json",
    log:
        f"{LOGS}/export/{{model}}.log",
    wildcard_constraints:
        model=any_of(name for name, of in STUDY.models.items() if of.is_of_library),
    cache: IS_CACHED
    priority: of_models(urgency)
    conda:
        "../envs/perseus.yaml"
    resources:
        mem_mb=4000,
    params:
        task=lambda w: planning.network_task(STUDY, w.model).plain(),
        code=SOURCES.fingerprint(["export_network.py"]),
        versions=lambda w: {
            **provenance.network_versions(planning.network_task(STUDY, w.model)),
            **contents([*files.weights(STUDY, w.model), *files.samples(STUDY, w.model)]),
        },
    message:
        "Exporting {wildcards.model} to ONNX"
    script:
        "../scripts/export_network.py"


rule own_onnx:
    """Prepare an ONNX file of the user for serving. Also write the responses of the user's file to
    sample inputs, and the relative error of the responses of the prepared file."""
    input:
        model=lambda w: STUDY.models[w.model].onnx,
        data=lambda w: onnx_files(w.model)[1:],
        inputs=lambda w: files.samples(STUDY, w.model),
        images=lambda w: STUDY.images[w.model],
    output:
        model=f"{RESULTS}/models/{{model}}/model.onnx",
        reference=f"{RESULTS}/models/{{model}}/reference.npz",
        check=f"{RESULTS}/models/{{model}}/check.json",
    log:
        f"{LOGS}/export/{{model}}.log",
    wildcard_constraints:
        model=any_of(name for name, of in STUDY.models.items() if of.onnx),
    cache: IS_CACHED
    priority: of_models(urgency)
    conda:
        "../envs/perseus.yaml"
    resources:
        mem_mb=4000,
    params:
        task=lambda w: planning.own_onnx_task(STUDY, w.model).plain(),
        code=SOURCES.fingerprint(["own_onnx.py"]),
        versions=lambda w: {
            **provenance.export_versions(provenance.OWN_ONNX, STUDY.images[w.model]),
            **contents([*onnx_files(w.model), *files.samples(STUDY, w.model)]),
        },
    message:
        "Checking the ONNX file of {wildcards.model}"
    script:
        "../scripts/own_onnx.py"


rule convert:
    """Convert an ONNX file to fp16 or int8, and compare its responses with the reference responses.

    Inputs and outputs stay fp32. If the conversion fails, the output files contain the reason. A
    grid then leaves out this precision, and the run continues.
    """
    input:
        model=f"{RESULTS}/models/{{model}}/model.onnx",
        reference=f"{RESULTS}/models/{{model}}/reference.npz",
    output:
        model=f"{RESULTS}/models/{{model}}/model.{{precision}}.onnx",
        check=f"{RESULTS}/models/{{model}}/check.{{precision}}.json",
    log:
        f"{LOGS}/export/{{model}}.{{precision}}.log",
    cache: IS_CACHED
    priority: of_models(urgency)
    conda:
        "../envs/perseus.yaml"
    resources:
        mem_mb=4000,
    params:
        # Snakemake's hash for its cache includes the parameters, but not the wildcards.
        precision="{precision}",
        code=SOURCES.fingerprint(["convert.py"]),
        versions=provenance.versions(provenance.CONVERT),
    message:
        "Converting {wildcards.model} to {wildcards.precision}"
    script:
        "../scripts/convert.py"


rule export_program:
    """Export a model with torch.export for the runtime pytorch, and compare its responses with the
    responses of torch."""
    input:
        weights=lambda w: files.weights(STUDY, w.model),
        images=lambda w: STUDY.images[w.model],
    output:
        model=f"{RESULTS}/models/{{model}}/model.pt2",
        check=f"{RESULTS}/models/{{model}}/check.pt2.json",
    log:
        f"{LOGS}/export/{{model}}.pt2.log",
    cache: IS_CACHED
    priority: of_models(urgency)
    conda:
        "../envs/perseus.yaml"
    resources:
        mem_mb=4000,
    params:
        task=lambda w: planning.export_task(STUDY, w.model).plain(),
        code=SOURCES.fingerprint(["export_program.py"]),
        versions=lambda w: {
            **provenance.export_versions(provenance.EXPORT, STUDY.images[w.model]),
            **contents(files.weights(STUDY, w.model)),
        },
    message:
        "Exporting {wildcards.model} as a torch program"
    script:
        "../scripts/export_program.py"


rule pictures:
    """Write the PNG or JPEG images that clients send to a model, the preprocessing of the model,
    and the responses of torch to these images into one file."""
    input:
        weights=lambda w: files.weights(STUDY, w.model),
        images=lambda w: STUDY.images[w.model],
    output:
        f"{RESULTS}/models/{{model}}/pictures.npz",
    log:
        f"{LOGS}/export/{{model}}.pictures.log",
    cache: IS_CACHED
    priority: of_models(urgency)
    conda:
        "../envs/perseus.yaml"
    resources:
        mem_mb=4000,
    params:
        task=lambda w: planning.export_task(STUDY, w.model).plain(),
        code=SOURCES.fingerprint(["pictures.py"]),
        versions=lambda w: {
            **provenance.versions(provenance.PICTURES),
            **contents(files.weights(STUDY, w.model)),
        },
    message:
        "Computing the reference responses of {wildcards.model} to pictures"
    script:
        "../scripts/pictures.py"


rule labelled:
    """Write the labelled images of a model and its preprocessing into one file."""
    input:
        reference=lambda w: files.reference(STUDY, w.model),
        labels=lambda w: files.labels(STUDY, w.model),
        images=lambda w: [each.file for each in STUDY.labelled[w.model]],
    output:
        f"{RESULTS}/models/{{model}}/labelled.npz",
    log:
        f"{LOGS}/export/{{model}}.labelled.log",
    cache: IS_CACHED
    priority: of_models(urgency)
    conda:
        "../envs/perseus.yaml"
    resources:
        mem_mb=4000,
    params:
        task=lambda w: planning.labelled_task(STUDY, w.model).plain(),
        code=SOURCES.fingerprint(["labelled.py"]),
        versions=lambda w: {
            **provenance.versions(provenance.PICTURES),
            **contents(files.labels(STUDY, w.model)),
        },
    message:
        "Collecting the labelled images of {wildcards.model}"
    script:
        "../scripts/labelled.py"
