"""`tocsin check` of a site with thousands of teams: the time grows with the file, and what is wrong is still found."""
import json
import resource

from tests.support.program import run_cli


def site(path, teams, extra=()):
    """A file with a receiver and a route for each team; a value per line, as people write it."""
    receivers = {f"r{i}": {"webhook": {"id": f"w{i}", "url": f"https://h{i}.example.com/x"}} for i in range(teams)}
    routes = [{"matchers": [f'team="t{i}"'], "receiver": f"r{i}"} for i in range(teams)]
    path.write_text(json.dumps({"transport": {"journal": str(path.parent / "j")}, "rules": ["exploding_tensor"], "receivers": receivers,
                                "route": {"receiver": "r0", "routes": routes + list(extra)}}, indent=1))
    return path


def cpu_of_check(path):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    code, out, err = run_cli("check", path, timeout=300)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert code == 0, out + err
    return after.ru_utime - before.ru_utime


def test_eight_times_the_teams_take_about_eight_times_the_time(tmp_path):
    few = min(cpu_of_check(site(tmp_path / "few.yaml", 1500)) for _ in range(3))
    many = cpu_of_check(site(tmp_path / "many.yaml", 12000))
    assert many < 20 * few, (few, many)  # squared it would be 64 times, and was 30


def test_among_thousands_a_route_that_nothing_reaches_is_named(tmp_path):
    path = site(tmp_path / "tocsin.yaml", 3000, [
        {"matchers": ['team="t1700"', 'job="b"'], "receiver": "r1"},
        {"matchers": ['team=~"t1800|t1801"'], "receiver": "r1"},  # two routes before take a value each: neither takes both
        {"matchers": ['team=~"t1900"'], "receiver": "r1"},
        {"matchers": ['team=~"x.*"'], "receiver": "r1"},
        {"matchers": ['team="x1"'], "receiver": "r1"}])
    out = run_cli("check", path)
    said = [line for line in (out[1] + out[2]).splitlines() if "no issue reaches" in line]
    assert len(said) == 3, said
    assert 'team="t1700"' in said[0] and 'team="t1900"' in said[1] and 'team=~"x.*"' in said[2], said


def test_an_id_and_a_receiver_among_thousands(tmp_path):
    path = site(tmp_path / "tocsin.yaml", 3000)
    config = json.loads(path.read_text())
    config["receivers"]["r2999"]["webhook"]["id"] = "w7"
    config["route"]["routes"][5]["receiver"] = "r30000"
    path.write_text(json.dumps(config, indent=1))
    code, out, err = run_cli("check", path)
    assert code != 0 and 'integration id "w7" is used twice' in out + err and "no receiver is called 'r30000'" in out + err
