// Samples of nodes: each series of a node is a unit, and time is that of its samples.
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <utility>

#include "rules/declared/point_rule.h"
#include "rules/declared/row_rule.h"
#include "rules/evaluate/evaluator.h"

namespace tocsin::rules::declared {
namespace {

/// "hw.gpu.utilization{hw.id=0}" → name and device. A single attribute is told by its value.
struct SeriesName {
  std::string_view base;
  std::string_view device;
};
SeriesName split(std::string_view text) {
  const std::size_t brace = text.find('{');
  if (brace == std::string_view::npos || !text.ends_with('}')) return {text, {}};
  std::string_view device = text.substr(brace + 1, text.size() - brace - 2);
  const std::size_t equals = device.find('=');
  if (equals != std::string_view::npos && device.find(',') == std::string_view::npos) {
    device.remove_prefix(equals + 1);
  }
  return {text.substr(0, brace), device};
}

void add_number(UnitText& text, std::uint64_t number) {
  std::array<char, 20> digits;  // NOLINT: written before it is read
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  text.add({digits.data(), static_cast<std::size_t>(end - digits.data())});
}

struct SeriesMemory {
  std::vector<std::uint64_t> words;  // empty: the rule does not look at this series
  std::string node;
  std::string device;
  std::int64_t newest = INT64_MIN;
  bool wanted = false;

  template <typename A>
  friend void io(A& a, SeriesMemory& m) {
    io_all(a, m.words, m.node, m.device, m.newest, m.wanted);
  }
};

using Series = std::map<std::pair<std::uint64_t, std::uint64_t>, SeriesMemory>;  // node, name

class SampleEvaluator final : public EvaluatorOf<Series> {
 public:
  SampleEvaluator(const Rule& rule, const Choice& choice) : rule_(rule), choice_(choice) {}

  void on_samples(std::uint32_t worker, std::string_view node, const core::FrameView& frame,
                  Scope& scope) override {
    const auto names = frame.column<std::uint64_t>(core::system_column::series);
    const auto times = frame.column<std::int64_t>(core::system_column::time);
    const auto numbers = frame.column<double>(core::system_column::value);
    const std::uint64_t number = frame.header().worker;
    for (std::size_t i = 0; i < frame.rows(); ++i) {
      SeriesMemory* series = known(worker, node, number, names[i], scope);
      // Samples come in the order of their time; one that does not has been judged without.
      if (series == nullptr || !series->wanted || times[i] <= series->newest) continue;
      series->newest = times[i];
      Point point;
      point.value = numbers[i];
      point.time = times[i];
      take(*series, number, names[i], point, scope);
    }
  }

  void on_end(Scope& scope) override {
    for (auto& [key, series] : state) {
      if (!series.wanted || !open(rule_.formula, series.words.data())) continue;
      judge(series, key.first, key.second, Point{}, piece_over(rule_.formula, series.words.data()),
            scope);
      turn(rule_.formula, 0, series.words.data());
    }
  }

 private:
  SeriesMemory* known(std::uint32_t worker, std::string_view node, std::uint64_t number,
                      std::uint64_t name, Scope& scope) {
    const auto found = state.find({number, name});
    if (found != state.end()) return &found->second;
    const Name* const said = scope.find(name);
    if (said == nullptr) return nullptr;  // its dictionary entry is yet to come
    const SeriesName parts = split(said->text);
    Candidate who = scope.who(worker);
    who.node = node;
    SeriesMemory& series = state[{number, name}];
    series.wanted = choice_.matches_series(parts.base, parts.device, who);
    if (!series.wanted) return &series;
    series.node = node;
    series.device = parts.device;
    series.words.resize(rule_.formula.sources[0].words);
    begin(rule_.formula, 0, series.words.data());
    return &series;
  }

  void take(SeriesMemory& series, std::uint64_t node, std::uint64_t name, const Point& point,
            Scope& scope) {
    std::uint64_t* const words = series.words.data();
    const std::int64_t over = piece_over(rule_.formula, words);
    const bool due = arrives(rule_.formula, 0, words, point);
    if (due) {
      judge(series, node, name, point, over, scope);
      turn(rule_.formula, 0, words);
    }
    if (add(rule_.formula, 0, words, point, due))
      judge(series, node, name, point, point.time, scope);
  }

  void judge(const SeriesMemory& series, std::uint64_t node, std::uint64_t name, const Point& point,
             std::int64_t end, Scope& scope) {
    const std::uint64_t* const memory = series.words.data();
    const Sight sight{&rule_.formula, &point, &memory, nullptr};
    const Verdict verdict = verdict_of(run(rule_.formula.when, sight));
    UnitText text;
    add_number(text, node);
    text.add("/");
    add_number(text, name);
    const std::uint64_t number = text.add("\x1e").number();
    if (scope.quiet(number, verdict)) return;
    Place place;
    place.step_clock = false;
    place.time = end;
    const bool spans = rule_.formula.window.kind == Window::Kind::last ||
                       rule_.formula.window.kind == Window::Kind::every;
    if (spans && !rule_.formula.window.size.steps) {
      place.first_time = distance(end, rule_.formula.window.size.amount);
    }
    Subject subject;
    subject.name = series.device.empty() ? series.node : series.node + "/" + series.device;
    const auto labels = [&]() -> Labels {
      Labels out{{"node", series.node}};
      if (!series.device.empty()) out.emplace_back("device", series.device);
      return out;
    };
    scope.judged(number, Scope::kNoWorker, verdict, place, subject, labels,
                 [&](const Subject& whom, unsigned) {
                   return tell(rule_, sight, whom, [&](const std::string& label) {
                     return label == "device" ? series.device : series.node;
                   });
                 });
  }

  const Rule& rule_;
  const Choice& choice_;
};

class SampleProgram final : public Program {
 public:
  SampleProgram(Rule rule, Choice choice) : rule_(std::move(rule)), choice_(std::move(choice)) {}
  [[nodiscard]] std::uint32_t inputs() const noexcept override { return input::kSamples; }
  [[nodiscard]] bool step_clock() const noexcept override { return false; }
  [[nodiscard]] std::unique_ptr<Evaluator> evaluator() const override {
    return std::make_unique<SampleEvaluator>(rule_, choice_);
  }

 private:
  Rule rule_;
  Choice choice_;
};

}  // namespace

std::shared_ptr<Program> sample_program(Rule rule, Choice choice) {
  return std::make_shared<SampleProgram>(std::move(rule), std::move(choice));
}

}  // namespace tocsin::rules::declared
