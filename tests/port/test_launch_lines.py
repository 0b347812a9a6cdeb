"""Launch lines in scripts, pages, lists and Python."""

from __future__ import annotations

import ast

import pytest

from shim.port.launch_lines.texts import port_launch_lines, port_launch_lines_in_python
from shim.port.plan import Plan

APIS = ("torch", "paddle_2", "paddle_3", "mindspore")


def ported(line: str, source: str = "torch", target: str = "", onto: str = "shim") -> str:
    result = port_launch_lines(line, plan(source, target, onto))
    assert not result.entries
    return result.text


def plan(source: str = "torch", target: str = "", onto: str = "shim") -> Plan:
    other = "mindspore" if source != "mindspore" else "torch"
    return Plan(source, target or other, onto=onto)  # type: ignore[arg-type]


ONTO_SHIM = [
    ("torch", "torchrun --nproc_per_node 2 train.py a b", "shim run -n 2 train.py a b"),
    ("torch", "torchrun --nproc-per-node=2 train.py --nproc_per_node 3", "shim run -n 2 train.py --nproc_per_node 3"),
    ("torch", "torchrun train.py", "shim run -n 1 train.py"),
    ("torch", "torchrun --standalone --nnodes=1 --node_rank 0 --nproc_per_node 2 train.py", "shim run -n 2 train.py"),
    ("torch", "torchrun --nproc_per_node 2 --max-restarts 3 train.py", "shim run -n 2 --max-restarts 3 train.py"),
    ("torch", "torchrun --nproc_per_node 2 -m pkg.train --x", "shim run -n 2 -m pkg.train --x"),
    ("torch", "python -m torch.distributed.run --nproc_per_node 2 train.py", "shim run -n 2 train.py"),
    ("torch", "python3.11 -u -m torch.distributed.run --nproc_per_node 2 train.py", "shim run -n 2 train.py"),
    ("torch", "$PYTHON -m torch.distributed.run --nproc_per_node 2 train.py", "$PYTHON -m shim run -n 2 train.py"),
    ("torch", "python -m torch.distributed.launch --use_env --nproc_per_node 2 x.py", "shim run -n 2 x.py"),
    ("torch", 'torchrun --nproc_per_node="$N" "$SCRIPT" "a b"', 'shim run -n "$N" "$SCRIPT" "a b"'),
    ("torch", "torchrun --nproc_per_node ${N:-2} ${DIR}/train.py", "shim run -n ${N:-2} ${DIR}/train.py"),
    ("torch", "torchrun --nproc_per_node=$(nproc --all) train.py", "shim run -n $(nproc --all) train.py"),
    ("torch", "torchrun --nproc_per_node=$(N) train.py", "shim run -n $(N) train.py"),
    ("torch", "torchrun --nproc_per_node=${{ matrix.n }} train.py", "shim run -n ${{ matrix.n }} train.py"),
    ("torch", "torchrun --nproc_per_node=NUM_GPUS your_script.py", "shim run -n NUM_GPUS your_script.py"),
    ("torch", "$ A=1 exec torchrun --nproc_per_node 2 a.py > log &", "$ A=1 exec shim run -n 2 a.py > log &"),
    ("torch", "run `torchrun --nproc_per_node 2 a.py` first", "run `shim run -n 2 a.py` first"),
    ("torch", "cd x && torchrun --nproc_per_node 2 a.py; torchrun a.py", "cd x && shim run -n 2 a.py; shim run -n 1 a.py"),
    ("torch", 'CMD ["torchrun", "--nproc_per_node=2", "a.py", "--x"]', 'CMD ["shim", "run", "-n", "2", "a.py", "--x"]'),
    ("torch", "command: ['torchrun', '--nproc_per_node', '2', '-m', 'a']", "command: ['shim', 'run', '-n', '2', '-m', 'a']"),
    ("paddle_3", "python -m paddle.distributed.launch --devices 0,1 train.py x", "shim run -n 2 train.py x"),
    ("paddle_2", "python -m paddle.distributed.launch --gpus=0,1,2 train.py", "shim run -n 3 train.py"),
    ("paddle_2", "fleetrun --nproc_per_node 2 train.py", "shim run -n 2 train.py"),
    ("mindspore", "msrun --worker_num=2 --local_worker_num=2 --join=True train.py", "shim run -n 2 train.py"),
    ("mindspore", "msrun train.py", "shim run -n 8 train.py"),
    ("mindspore", "mpirun -n 2 python train.py --x", "shim run -n 2 train.py --x"),
    ("mindspore", "mpirun --allow-run-as-root -np 2 -x A=1 python -u -m a.b", "shim run -n 2 --env A=1 -m a.b"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "before", "after"), ONTO_SHIM)
def test_a_launch_line_becomes_shim_run(source: str, before: str, after: str) -> None:
    assert ported(before + "\n", source) == after + "\n"


@pytest.mark.parametrize("source", APIS)
@pytest.mark.parametrize(
    "text",
    [
        "Use torchrun, mpirun or msrun; torchrun is torch's.",
        "`torchrun` and `msrun` start ranks, /opt/bin/torchrun --nproc_per_node 2 a.py too",
        "torchrun --help; which torchrun; pip install torchrun",
        "mpirun -n 2 ./solver; mpiexec -n 2 lammps -in x",
        "my-torchrun --nproc_per_node 2 a.py; torchrun_old --nproc_per_node 2 a.py",
        "shim run -n 2 train.py",
        '["a", "torchrun"] ("torchrun", "b")',
        "torchrun",
        "python -m torch.distributed",
    ],
)
def test_what_is_no_launch_line_stays(source: str, text: str) -> None:
    result = port_launch_lines(text, plan(source))
    assert (result.text, result.entries) == (text, [])


ONTO_NATIVE = [
    ("torch", "paddle_3", "torchrun --nproc_per_node 2 a.py x", "python -m paddle.distributed.launch --nproc_per_node 2 a.py x"),
    ("torch", "mindspore", "torchrun --nproc_per_node 2 a.py x", "msrun --worker_num=2 --local_worker_num=2 --join=True a.py x"),
    ("torch", "paddle_2", "$P -m torch.distributed.run --nproc_per_node 2 a.py", "$P -m paddle.distributed.launch --nproc_per_node 2 a.py"),
    ("paddle_3", "torch", "python -m paddle.distributed.launch --devices 0,1 a.py", "torchrun --nproc-per-node 2 a.py"),
    ("mindspore", "torch", "msrun --worker_num=2 --local_worker_num=2 a.py", "torchrun --nproc-per-node 2 a.py"),
    ("mindspore", "torch", "mpirun -n 2 python a.py", "torchrun --nproc-per-node 2 a.py"),
    ("torch", "paddle_3", "mpirun -n 2 python a.py", "python -m paddle.distributed.launch --nproc_per_node 2 a.py"),
    ("torch", "mindspore", "mpirun -n 2 python a.py", "mpirun -n 2 python a.py"),  # MindSpore takes its ranks from MPI
    ("torch", "mindspore", "shim run -n 2 a.py", "msrun --worker_num=2 --local_worker_num=2 --join=True a.py"),
    ("paddle_2", "paddle_3", "python -m paddle.distributed.launch --devices 0,1 a.py", "python -m paddle.distributed.launch --devices 0,1 a.py"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "target", "before", "after"), ONTO_NATIVE)
def test_a_launch_line_becomes_that_of_the_target(source: str, target: str, before: str, after: str) -> None:
    assert ported(before, source, target, "native") == after


LEFT = [
    ("torch", "torchrun --nnodes=2 --nproc_per_node 2 a.py", "launch-nodes"),
    ("torch", "torchrun --rdzv_endpoint=host:29500 --nproc_per_node 2 a.py", "launch-nodes"),
    ("torch", "torchrun --master_addr=10.0.0.1 --nproc_per_node 2 a.py", "launch-nodes"),
    ("torch", "srun torchrun --nproc_per_node 2 a.py", "launch-nodes"),
    ("torch", "torchrun --nproc_per_node=gpu a.py", "launch-ranks"),
    ("torch", "torchrun --log_dir logs --nproc_per_node=2 a.py", "launch-log-folder"),
    ("torch", "torchrun --no-python --nproc_per_node=2 a.py", "launch-option"),
    ("torch", "torchrun --nproc_per_node 2 ...", "launch-incomplete"),
    ("torch", "torchrun --nproc_per_node", "launch-incomplete"),
    ("torch", "  - torchrun", "launch-incomplete"),
    ("paddle_3", "python -m paddle.distributed.launch a.py", "launch-ranks"),
    ("paddle_3", "python -m paddle.distributed.launch --devices $D a.py", "launch-ranks"),
    ("paddle_3", "python -m paddle.distributed.launch --ips=a,b a.py", "launch-nodes"),
    ("mindspore", "msrun --worker_num=8 --local_worker_num=4 a.py", "launch-nodes"),
    ("mindspore", "msrun --worker_num=2 --local_worker_num=2 --bind_core=True a.py", "launch-option"),
    ("mindspore", "mpirun -n 2 --hostfile h python a.py", "launch-nodes"),
    ("mindspore", "mpirun -n 2 -x PATH python a.py", "launch-option"),
]


@pytest.mark.parametrize(("source", "line", "rule"), LEFT)
def test_what_has_no_equivalent_is_left_and_told(source: str, line: str, rule: str) -> None:
    result = port_launch_lines("first\n" + line, plan(source))
    assert result.text == "first\n" + line
    [entry] = result.entries
    assert (entry.line, entry.kind, entry.rule) == (2, "left", rule)
    assert entry.why
    assert entry.advice


@pytest.mark.parametrize(
    ("source", "line", "after", "rule"),
    [
        ("torch", "torchrun --master_port=29501 --nproc_per_node=2 a.py", "shim run -n 2 a.py", "launch-port"),
        ("torch", "python -m torch.distributed.launch --nproc_per_node=2 a.py", "shim run -n 2 a.py", "launch-local-rank"),
        ("paddle_3", "python -m paddle.distributed.launch --gpus 2,3 a.py", "shim run -n 2 a.py", "launch-devices"),
        ("mindspore", "msrun --worker_num=2 --local_worker_num=2 --master_port=8118 a.py", "shim run -n 2 a.py", "launch-port"),
    ],
)  # fmt: skip
def test_what_changes_its_meaning_is_ported_and_told(source: str, line: str, after: str, rule: str) -> None:
    result = port_launch_lines(line, plan(source))
    assert result.text == after
    assert [(entry.kind, entry.rule) for entry in result.entries] == [("changed", rule)]


@pytest.mark.parametrize(
    ("line", "target", "rule"),
    [
        ("torchrun --nproc_per_node 2 -m a", "paddle_3", "launch-option"),
        ("torchrun --nproc_per_node 2 --max_restarts 3 a.py", "mindspore", "launch-option"),
        ("shim run -n 2 --env A=1 a.py", "torch", "launch-option"),
        ("shim run -n 2 --as-installed a.py", "torch", "launch-option"),
    ],
)
def test_what_the_targets_launcher_cannot_do_is_left(line: str, target: str, rule: str) -> None:
    result = port_launch_lines(line, Plan("torch" if target != "torch" else "mindspore", target, onto="native"))
    assert (result.text, [entry.rule for entry in result.entries]) == (line, [rule])


def test_a_command_over_several_lines_keeps_the_layout_of_its_program() -> None:
    text = "a\nCUDA_VISIBLE_DEVICES=0 torchrun \\\n    --nproc_per_node=2 \\\n    --nnodes=1 \\\n    train.py \\\n    --x 1\nb\n"
    result = port_launch_lines(text, plan())
    assert result.text == "a\nCUDA_VISIBLE_DEVICES=0 shim run -n 2 \\\n    train.py \\\n    --x 1\nb\n"
    assert [result.line_before(line) for line in (1, 2, 4, 5)] == [1, 2, 6, 7]


IN_PYTHON = [
    ('"""Run torchrun --nproc_per_node 2 a.py\n"""', '"""Run shim run -n 2 a.py\n"""'),
    ("x = 1  # torchrun --nproc_per_node 2 a.py", "x = 1  # shim run -n 2 a.py"),
    ("os.system('torchrun --nproc_per_node 2 a.py')", "os.system('shim run -n 2 a.py')"),
    (r"s = 'torchrun --nproc_per_node 2 a.py\n'", r"s = 'shim run -n 2 a.py\n'"),
    ("s = f'torchrun --nproc_per_node={len(x) + 1} {script} a'", "s = f'shim run -n {len(x) + 1} {script} a'"),
    ('run(["torchrun", "--nproc_per_node", "2", "a.py"])', 'run(["shim", "run", "-n", "2", "a.py"])'),
    ("run(['é', 'torchrun', '--nproc_per_node=2', p, *a])", "run(['é', 'shim', 'run', '-n', '2', p, *a])"),
    ('run(["torchrun", "--nproc_per_node", str(n), p])', 'run(["shim", "run", "-n", str(n), p])'),
    ('run(["torchrun", f"--nproc_per_node={n}", p])', 'run(["shim", "run", "-n", f"{n}", p])'),
    (
        'c = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=2", "a.py"]',
        'c = [sys.executable, "-m", "shim", "run", "-n", "2", "a.py"]',
    ),
    ('c = [\n    "torchrun",\n    "--nproc_per_node=2",\n    "a.py",\n]', 'c = [\n    "shim", "run", "-n", "2",\n    "a.py",\n]'),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after"), IN_PYTHON)
def test_launch_lines_in_python_are_ported(before: str, after: str) -> None:
    result = port_launch_lines_in_python(before, plan())
    assert (result.text, result.entries) == (after, [])
    ast.parse(result.text)


@pytest.mark.parametrize(
    "code",
    [
        "names = ('torchrun', launcher)",
        "torchrun = 1",
        "x = ['torchrun', 'mpirun']",
        "s = 'torchrun'  # torchrun",
        "cases = [(torchrun, 2, 'torchrun', ALONE)]",
    ],
)
def test_names_of_launchers_in_python_stay(code: str) -> None:
    result = port_launch_lines_in_python(code, plan())
    assert (result.text, result.entries) == (code, [])


@pytest.mark.parametrize(
    "code",
    ["c = ['torchrun', '--nproc_per_node=2'] + [script]", "c = ['torchrun', *options, 'a.py', '--x']", "s = 'torchrun --nproc_per_node 2 ' + x"],
)  # fmt: skip
def test_what_is_not_certain_in_python_stays(code: str) -> None:
    assert port_launch_lines_in_python(code, plan()).text == code


def test_an_expression_becomes_the_number_of_msruns_workers() -> None:
    result = port_launch_lines_in_python('c = ["torchrun", "--nproc_per_node", str(n), p]', plan(onto="native"))
    assert result.text == 'c = ["msrun", "--worker_num", str(n), "--local_worker_num", str(n), "--join=True", p]'
