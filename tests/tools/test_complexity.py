"""tools/lib/complexity.py counts the decisions of C++ functions."""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "lib"))

import complexity  # noqa: E402


def counted(text):
    return {name: count for _, name, count in complexity.functions(text)}


def test_each_decision_counts_once():
    assert counted("""
int plain() { return 1; }
int all(int a, bool b) {
  if (a > 0 && b) return 1;
  for (int i = 0; i < a; ++i) a -= b || i > 3 ? 1 : 2;
  while (a > 0) --a;
  switch (a) {
    case 1:
    case 2:
      return 3;
    default:
      return 4;
  }
}
""") == {"plain": 1, "all": 9}


def test_references_comments_and_strings_are_no_decisions():
    assert counted("""
#define CHECK(x) if (x) return
void take(Thing&& one, std::vector<int>&& all) {  // if && while
  auto&& other = "if (a && b) ? 1 : 2";
  const char c = '?'; /* case 1: */
  const long big = 1'000'000;
}
""") == {"take": 1}


def test_lambdas_count_for_their_function_and_methods_stand_alone():
    assert counted("""
namespace a {
constexpr std::array<int, 2> kAll{{1, 2}};
template <typename T>
struct Box : Base<T> {
  Box(int a) : a_{a}, b_(a) { if (a) b_ = 1; }
  int get() const noexcept override { return a_ ? 1 : 2; }
  int a_ = 0;
};
std::vector<int> Box::all(int a) {
  const auto one = [&](int x) { return x > 0 && x < a; };
  if (one(a)) return {1};
  return {};
}
auto last(int a) -> std::vector<int> { return a ? One{} : Two{}; }
}  // namespace a
""") == {"Box": 2, "get": 2, "Box::all": 3, "last": 2}


def test_functions_above_the_limit_are_named_with_their_place(tmp_path):
    (tmp_path / "a.cc").write_text("\nvoid long_one(int a) {\n" + "  if (a) return;\n" * 3 + "}\nvoid f() {}\n")
    seen, lines = complexity.problems(tmp_path, ["a.cc"], limit=3)
    assert seen == 2
    assert len(lines) == 1 and lines[0].startswith("a.cc:2: long_one has a cyclomatic complexity of 4, more than 3")
    assert complexity.problems(tmp_path, ["a.cc"], limit=4) == (2, [])
