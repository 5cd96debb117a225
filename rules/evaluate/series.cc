// Rules of scalars: one value per completed step, or one mean per completed evaluation pass.
#include "rules/evaluate/series.h"

namespace tocsin::rules {
namespace {

std::uint64_t number_of(const SeriesKey& key) {
  constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15;
  return key.name ^ (kOdd * (std::uint64_t{key.mode} + 1));
}

/// Turns what a series rule says about a unit into the engine's terms.
class Report final : public SeriesReport {
 public:
  Report(Scope& scope, const Place& place) : scope_(scope), place_(place) {}

  void evaluated(const SeriesKey& key, std::string_view metric, Verdict verdict,
                 const StepPoint& point, Explain explain) override {
    Place place = place_;
    place.mode = point.mode;
    place.step = point.step;
    place.global_step = point.global_step;
    place.time = point.time;
    const auto labels = [&]() -> Labels {
      Labels unit{{"metric", std::string(metric)}};
      if (key.mode != 0xFF) {
        unit.emplace_back("mode", core::to_string(static_cast<core::Mode>(key.mode)));
      }
      return unit;
    };
    Subject subject;
    subject.name = metric;
    subject.mode = point.mode;
    subject.step = point.step;
    scope_.judged(number_of(key), Scope::kNoWorker, verdict, place, subject, labels, explain);
  }

 private:
  Scope& scope_;
  const Place& place_;
};

}  // namespace

std::uint32_t SeriesProgram::inputs() const noexcept { return input::kValues; }

std::unique_ptr<Evaluator> SeriesProgram::evaluator() const {
  return std::make_unique<SeriesEvaluator>(*this);
}

void SeriesEvaluator::on_values(const StepPoint& point, bool pass, const Place& place,
                                Scope& scope) {
  Report report(scope, place);
  if (pass) {
    program_.on_pass(state, point, report);
  } else {
    program_.on_step(state, point, report);
  }
  const auto name_of = [&](std::uint64_t name) { return scope.text(name); };
  const std::int64_t update = point.mode == core::Mode::eval ? point.train_step : point.step;
  core::ValueMap told = program_.answers(state, name_of, static_cast<double>(update) + 1);
  if (!told.empty()) scope.so_far(point.time, std::move(told));
}

void SeriesEvaluator::on_end(Scope& scope) {
  const auto name_of = [&](std::uint64_t name) { return scope.text(name); };
  core::ValueMap told = program_.answers(state, name_of, std::nullopt);
  if (!told.empty()) scope.summary(std::move(told));
}

}  // namespace tocsin::rules
