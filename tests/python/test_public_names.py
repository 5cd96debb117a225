"""What scripts import keeps its name: every public module, what it offers, and every name that a page tells to import."""

import ast
import importlib.util
import inspect
import pathlib
import re
import subprocess
import sys

import pytest

import tocsin

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONFIG = "CollectionConfig DebuggerHookConfig ReductionConfig SaveConfig SaveConfigMode"
OFFERED = {
    "tocsin": "EXIT_STOPPED Hook Rule StopRequest __version__ get_hook unwatch watch DebugHookConfig " + CONFIG,
    "tocsin.analysis": "Frame Heatmap Issue MergedTimeline MetricsHistogram NoProfilerData NoTrace NotInstalled PandasFrame PandasFrameAnalysis Profile PyinstrumentAnalysis "
                       "PythonProfileAnalysis cProfileAnalysis cProfileStats "
                       "Resource Server ServerError StatsBy StepHistogram StepTimelineChart TimelineCharts Traces TrainingJob activation_map create_trial export issues "
                       "no_refresh refresh runs tensor_plot traces",
    "tocsin.arrays": "describe dtype_code fill",
    "tocsin.core.collection": "CollectionKeys",
    "tocsin.core.logger": "get_logger",
    "tocsin.core.modes": "ModeKeys",
    "tocsin.curvature": "Closure Curvature",
    "tocsin.debugger": "Action ActionList Actions CollectionConfig ProfilerRule Rule configuration read_job rule_configs rule_job_summary "
                       "to_yaml write",
    "tocsin.exceptions": "ElementsUnavailableForStep InsufficientInformationForRuleInvocation InvalidWorker MissingData NoMoreData RuleError "
                         "RuleEvaluationConditionMet ShapeUnavailableForStep StepNotYetAvailable StepUnavailable TensorUnavailable "
                         "TensorUnavailableForStep",
    "tocsin.gymnasium": "stable_baselines3 watched",
    "tocsin.hashes": "crc32c murmur2 partition_for xxh64",
    "tocsin.hook": "Capture EXIT_STOPPED Hook Rules Stop",
    "tocsin.hook_config": "Parameters Read collection_body read " + CONFIG,
    "tocsin.jax": "COLUMNS Moments Training ledger recorded statistics watch",
    "tocsin.keras": "COLUMNS TocsinCallback Training statistics watch",
    "tocsin.lightgbm": "callback",
    "tocsin.lightning": "TocsinCallback callbacks",
    "tocsin.modes": "ModeKeys",
    "tocsin.raw": "HOW NoRawTensor RawTensors",
    "tocsin.reading": "MODES Tensors rows",
    "tocsin.rules": "RequiredTensors Rule RuleEvaluationConditionMet StepState Tensor Trial create_trial invoke invoke_rule",
    "tocsin.rules.rule": "Rule",
    "tocsin.rules.rule_invoker": "invoke invoke_rule",
    "tocsin.rules.trial": "StepState Tensor Trial",
    "tocsin.rules.worker": "main",
    "tocsin.sink": "Sink TRAINING",
    "tocsin.sklearn": "Training history watch",
    "tocsin.smdebug": "Collection CollectionKeys Hook create_from_json_file create_trial del_hook get_hook modes set_hook " + CONFIG,
    "tocsin.smdebug.analysis": "",
    "tocsin.smdebug.analysis.utils": "no_refresh refresh",
    "tocsin.smdebug.core": "",
    "tocsin.smdebug.core.collection": "CollectionKeys",
    "tocsin.smdebug.core.modes": "ModeKeys",
    "tocsin.smdebug.exceptions": "IndexReaderException InvalidWorker MissingCollectionFiles NoMoreData NoMoreProfilerData StepUnavailable "
                                 "RuleEvaluationConditionMet StepNotYetAvailable TensorUnavailable TensorUnavailableForStep",
    "tocsin.smdebug.profiler": "",
    "tocsin.smdebug.profiler.analysis.notebook_utils.heatmap": "Heatmap",
    "tocsin.smdebug.profiler.analysis.notebook_utils.metrics_histogram": "MetricsHistogram",
    "tocsin.smdebug.profiler.analysis.notebook_utils.step_histogram": "StepHistogram",
    "tocsin.smdebug.profiler.analysis.notebook_utils.step_timeline_chart": "StepTimelineChart",
    "tocsin.smdebug.profiler.analysis.notebook_utils.timeline_charts": "TimelineCharts",
    "tocsin.smdebug.profiler.analysis.notebook_utils.training_job": "TrainingJob",
    "tocsin.smdebug.profiler.analysis.utils.merge_timelines": "MergedTimeline",
    "tocsin.smdebug.profiler.analysis.utils.pandas_data_analysis": "PandasFrameAnalysis Resource StatsBy",
    "tocsin.smdebug.profiler.analysis.utils.profiler_data_to_pandas": "PandasFrame",
    "tocsin.smdebug.pytorch": "Hook SaveConfig modes",
    "tocsin.smdebug.rules": "Rule invoke_rule",
    "tocsin.smdebug.rules.rule": "Rule",
    "tocsin.smdebug.rules.rule_invoker": "invoke_rule",
    "tocsin.smdebug.trials": "Trial create_trial",
    "tocsin.tensorboard": "NoTensorBoard export histogram_of main scalars_of",
    "tocsin.trace": "main read",
    "tocsin.transformers": "TocsinCallback",
    "tocsin.trials": "StepState Tensor Trial create_trial",
    "tocsin.wire": "Frame WireError decode_frame encode_dictionary encode_frame encode_lifecycle encode_tensor_chunk header run_uid",
    "tocsin.xgboost": "TocsinCallback",
}
PROGRAMS = ("tocsin.debugger", "tocsin.tensorboard", "tocsin.trace")  # python3 -m


def offered(name):
    """Names of a module. Where its framework is not installed here, those that it hands on, if the file behind it has them."""
    try:
        return set(dir(importlib.import_module(name)))
    except ImportError as missing:
        assert not (missing.name or "tocsin.").startswith("tocsin"), missing
    door = ast.parse((ROOT / "python" / (name.replace(".", "/") + ".py")).read_text())
    out = set()
    for line in door.body:
        if isinstance(line, ast.ImportFrom):
            behind = (ROOT / "python/tocsin" / (line.module.replace(".", "/") + ".py")).read_text()
            out |= {alias.name for alias in line.names if re.search(rf"\b{alias.name}\b", behind)}
    return out


@pytest.mark.parametrize("module", sorted(OFFERED))
def test_a_public_module_offers_its_names(module):
    names = offered(module)
    missing = [name for name in OFFERED[module].split() if name not in names and not (module == "tocsin" and hasattr(tocsin, name))]
    assert not missing


def told():
    """(page, module, name or "") of every import that a page tells."""
    pages = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md", ROOT / "python/README.md", ROOT / "python/PYPI.md"]
    modules = "|".join(sorted(name.split(".")[1] for name in OFFERED if "." in name))
    for page in pages:
        text = page.read_text(encoding="utf-8")
        for module, names in re.findall(r"from (tocsin[\w.]*) import ([\w ,]+)", text):
            yield from ((page.name, module, name.split(" as ")[0].strip()) for name in names.split(",") if name.strip())
        for module in re.findall(r"(?:import|python3 -m) (tocsin\.[\w.]+\w)", text):
            yield page.name, module, ""
        for module, name in re.findall(rf"`(tocsin\.(?:{modules}))\.([A-Za-z_]\w*)", text):
            if f"{module}.{name}" not in OFFERED:
                yield page.name, module, name


def test_pages_tell_of_names_that_are_there():
    found = set(told())
    assert len(found) > 30
    for page, module, name in sorted(found):
        assert module in OFFERED, (page, module)
        assert not name or name in OFFERED[module].split(), (page, module, name)


def test_every_file_at_the_top_is_in_this_list():
    files = {f"tocsin.{file.stem}" for file in (ROOT / "python/tocsin").glob("*.py") if not file.stem.startswith("_")}
    assert files - set(OFFERED) == set()


@pytest.mark.parametrize("module", PROGRAMS)
def test_a_module_that_is_a_program_still_is(module):
    done = subprocess.run([sys.executable, "-m", module, "--help"], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout + done.stderr).startswith(f"usage: python3 -m {module} ")


def test_importing_tocsin_imports_nothing_but_python():
    code = ("import sys; before = set(sys.modules); import tocsin; "
            "print(*sorted({name.split('.')[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names)))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["tocsin"]


@pytest.mark.parametrize("framework", ["torch", "transformers.trainer", "lightning.pytorch", "xgboost", "lightgbm", "keras"])
def test_the_file_that_tocsin_run_loads_by_its_path_finds_the_package(framework):
    """It has no package then, so that a relative import of its own fails."""
    code = ast.parse((ROOT / "python/tocsin/_attach.py").read_text())
    assert not [line.lineno for line in ast.walk(code) if isinstance(line, ast.ImportFrom) and line.level]
    spec = importlib.util.spec_from_file_location("tocsin_attach", ROOT / "python/tocsin/_attach.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    attach = ast.parse(inspect.getsource(module.FRAMEWORKS[framework]))
    (imported,) = [line for line in ast.walk(attach) if isinstance(line, ast.ImportFrom)]
    (name,) = [alias.name for alias in imported.names]
    place = ROOT / "python" / imported.module.replace(".", "/")
    behind = (place / f"{name}.py") if place.is_dir() else place.with_suffix(".py")
    assert re.search(rf"^(?:class|def) {name}\b", behind.read_text(), re.MULTILINE) or behind.stem == name
