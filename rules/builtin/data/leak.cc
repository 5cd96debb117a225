// Fires when a task is too good to be true: the target, or the evaluation rows, stand in what the model trains on.
//
// Reads   scalars ledger/<call>/…, ledger/data/<set>/…, ledger/plan/updates (docs/ledger.md); of boosters
//         feature_importance/total_gain/<feature>. Of all workers.
// Window  one step; `target_is_input` adds up all steps of a call and mode, `one_column` wants three rounds in a row,
//         `too_fast` adds up the evaluation before a hundredth of the planned updates is done.
// Fires   target_is_input   a call of classes: more than 200 places, 99 % of which hold their own input, fewer than half
//                           of which would by chance
//         target_in_input   a column is the label bit for bit in 99 %, beyond chance; or it alone explains more than
//                           `strong_fit` of the labels (from `fit` on a warning), and with the labels shifted by a row it
//                           leaves ten times as much unexplained; in shuffled batches the next column does, too
//         overlap           more evaluation rows stand among the training rows than `overlap` and training rows among each
//                           other do, at 0.001 (a fifth: an error); of networks, whose training rows come again at each pass,
//                           also among as many of them, that came first, as the evaluation has
//         one_column        a column has 95 % of the total gain and the next 1 %; of several classes half, and five
//                           times the next
//         too_fast          99 % better than a constant on evaluation after 1 % of the planned updates or the first of three
//                           passes and more, or on training while each sample is new
// Quiet   where nothing of it is sent; one_column where target_in_input has named a column, where the column tells of the
//         labels of neighbouring rows as well, and while any metric is less than 90 % better than its constant.
// Source  our own; docs/rules/leak.md.

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "rules/builtin/data/leak_card.h"
#include "rules/builtin/data/leak_columns.h"
#include "rules/builtin/data/leak_rows.h"
#include "rules/builtin/data/leak_telling.h"
#include "rules/builtin/data/ledger_sets.h"
#include "rules/evaluate/step_set.h"

namespace tocsin::rules {
namespace {

constexpr std::string_view kLeakKinds[] = {"target_is_input", "target_in_input", "overlap",
                                           "one_column", "too_fast"};

struct Leak {
  static constexpr std::span<const std::string_view> kKinds = kLeakKinds;
  static constexpr bool kPerWorker = false;
  static constexpr bool kJoinsModes = true;
  static constexpr TensorUse kTensorUse = TensorUse::none;
  static constexpr std::span<const Sent> kSent{};
  enum Kind : unsigned { kTargetIsInput, kTargetInInput, kOverlap, kOneColumn, kTooFast };
  static constexpr std::string_view kGain = "feature_importance/total_gain/";
  static constexpr std::string_view kPlan = "ledger/plan/";
  static constexpr double kLeastRows = 200;
  static constexpr double kCopied = 0.99;
  static constexpr double kMostByChance = 0.5;
  static constexpr double kHalfAlpha = 0.0005;
  static constexpr double kAlone = 0.95;
  static constexpr double kNext = 0.01;
  static constexpr double kMostOfClasses = 0.5;
  static constexpr double kTimesNext = 5;
  static constexpr std::uint32_t kRounds = 3;
  static constexpr double kLeastSkill = 0.9;  // too good
  static constexpr double kSolved = 0.99;
  static constexpr double kEarly = 0.01;    // of the planned updates
  static constexpr double kPasses = 3;      // planned: the first is early
  static constexpr double kFirstTold = 16;  // updates

  struct Config {
    double fit = 0.995;
    double strong_fit = 0.97;
    double overlap = 0.01;
  };
  /// Sums of one loss call in one mode.
  struct Call {
    double window = 1;  // update at which the sums of the loss began, in training
    double places = 0;
    double same = 0;
    double by_chance = 0;
    double samples = 0;
    double loss = 0;
    double trivial = 0;
    template <typename A>
    friend void io(A& a, Call& c) {
      io_all(a, c.window, c.places, c.same, c.by_chance, c.samples, c.loss, c.trivial);
    }
  };
  struct State {
    std::map<std::string, Call> calls;  // by mode and call
    double planned = 0;                 // updates; 0: not known
    double epochs = 0;                  // planned; 0: not known
    double told = 0;                    // updates at the last word of what is known
    LeakCard card;
    double classes = 0;
    bool named = false;                // a column of the training rows, by target_in_input
    std::vector<std::string> ordered;  // columns that know their neighbours' labels
    std::string column;                // of the largest gain,
    std::uint32_t rounds = 0;          // so many rounds in a row
    std::string feature;               // one that had any gain; there were
    bool several = false;              // others
    template <typename A>
    friend void io(A& a, State& s) {
      io_all(a, s.calls, s.planned, s.epochs, s.told, s.card, s.classes, s.ordered, s.named,
             s.column, s.rounds, s.feature, s.several);
    }
  };
  using States = std::map<std::pair<std::uint32_t, std::uint8_t>, State>;
  using Fields = std::map<std::string, double, std::less<>>;
  /// What a step brings.
  struct Brought {
    std::map<std::string, Fields> calls;
    LedgerSets sets;
    std::map<std::string, double> gains;
  };

  static constexpr std::uint8_t kModes =
      kTrainModes | mode_bit(core::Mode::eval);  // NOLINT(hicpp-signed-bitwise)
  static Defaults defaults(Preset) {
    return {.modes = kModes, .patterns = {"^ledger/", "^feature_importance/total_gain/"}};
  }
  static void read(config::Reader& in, Config& cfg, Preset) {
    in.optional("fit", cfg.fit, config::between(0.0, 1.0),
                "share of the labels that one column explains alone, above which it warns");
    in.optional("strong_fit", cfg.strong_fit, config::between(0.0, 1.0),
                "the same share, above which it informs");
    in.optional("overlap", cfg.overlap, config::between(0.0, 1.0),
                "largest share of evaluation rows that may also be training rows");
  }
  static std::vector<Need> needs(const Config&) { return {{"ledger"}}; }

  // --------------------------------------------------------------------------- what came

  static void take(const StepSet& set, SetReport& report, State& state, Brought& brought) {
    for (const StepRow& row : set.rows) {
      const Name* name = report.scope().find(row.name());
      const double value = row.row.sum;
      if (name == nullptr || !row.scalar || !std::isfinite(value)) continue;
      const std::string_view text = name->text;
      if (text.starts_with(kGain)) {
        brought.gains[std::string(text.substr(kGain.size()))] += value;
      } else if (text.starts_with(kPlan)) {
        if (text.substr(kPlan.size()) == "updates") state.planned = value;
        if (text.substr(kPlan.size()) == "epochs") state.epochs = value;
      } else if (!take_set(brought.sets, text, value) && text.starts_with(kLedgerPrefix) &&
                 !text.starts_with(kLedgerData)) {
        const std::size_t last = text.rfind('/');
        if (last < kLedgerPrefix.size()) continue;
        const auto call = text.substr(kLedgerPrefix.size(), last - kLedgerPrefix.size());
        brought.calls[std::string(call)][std::string(text.substr(last + 1))] += value;
      }
    }
  }

  static void judge(const Config& cfg, State& state, const StepSet& set, SetReport& report) {
    Brought brought;
    take(set, report, state, brought);
    for (const auto& [call, fields] : brought.calls) judge_call(state, call, fields, set, report);
    for (const auto& [name, data] : brought.sets) {
      if (name == "train") judge_columns(cfg, state, set, data, report);
      if (name != "train" && data.has("compared"))
        judge_overlap(cfg, state, set, name, data, report);
    }
    if (!brought.gains.empty()) judge_gains(state, brought.gains, least_skill(brought), report);
    const double updates = updates_of(set);
    if (!state.card.empty() && (state.told == 0 || updates >= 2 * state.told)) {
      state.told = std::max(updates, kFirstTold);
      report.scope().so_far(set.time, state.card.told());
    }
  }

  // --------------------------------------------------------------------------- loss calls

  static double updates_of(const StepSet& set) {
    const std::int64_t last = set.mode == core::Mode::eval ? set.after_train : set.step;
    return last < 0 ? 0 : static_cast<double>(last) + 1;
  }

  /// Until how many updates a solved task was solved at once. Of training only while each sample is new: there the loss is that of
  /// samples that nobody has trained on.
  static double early(const State& state, bool training) {
    const double part = kEarly * state.planned;
    const double pass = state.epochs > 0 ? state.planned / state.epochs : 0;
    if (training) return std::min(part, pass);
    return state.epochs >= kPasses ? std::max(part, pass) : part;
  }

  static void judge_call(State& state, const std::string& call, const Fields& fields,
                         const StepSet& set, SetReport& report) {
    const auto field = [&](std::string_view name) {
      const auto found = fields.find(name);
      return found == fields.end() ? 0.0 : found->second;
    };
    Call& sums = state.calls[std::string(core::to_string(set.mode)) + '/' + call];
    unsigned kinds = 0;
    bool judged = false;
    if (fields.contains("input_places") && fields.contains("labels")) {  // classes
      sums.places += field("input_places");
      sums.same += field("same_as_input");
      sums.by_chance += field("same_by_chance");
      judged = sums.places > kLeastRows;
      if (judged && sums.same >= kCopied * sums.places &&
          sums.by_chance < kMostByChance * sums.places) {
        kinds |= 1U << kTargetIsInput;
      }
    }
    const bool training = set.mode != core::Mode::eval;
    const double updates = updates_of(set);
    if (fields.contains("trivial") && updates <= early(state, training)) {
      if (training && updates >= 2 * sums.window) {  // the newer half of what came
        sums.samples = sums.loss = sums.trivial = 0;
        sums.window = updates;
      }
      sums.samples += field("samples");
      sums.loss += field("loss");
      sums.trivial += field("trivial");
      if (sums.samples >= kLeastRows && sums.trivial > 0) {
        judged = true;
        if (sums.loss < (1 - kSolved) * sums.trivial) kinds |= 1U << kTooFast;
        state.card.put(set, std::string(kLedgerPrefix) + call, (kinds >> kTooFast & 1U) != 0,
                       {{"skill", 1 - sums.loss / sums.trivial}, {"samples", sums.samples}});
      }
    }
    if (!fields.contains("input_places") && !fields.contains("trivial")) return;
    Verdict verdict = judged ? kOk : kInsufficient;
    if (kinds != 0) verdict = {EvaluationOutcome::hit, static_cast<std::uint8_t>(kinds)};
    const std::string name = std::string(kLedgerPrefix) + call;
    report.evaluated({{"metric", name}}, name, verdict, [&](const Subject& subject, unsigned kind) {
      return kind == kTargetIsInput
                 ? same_places(call, sums.places, sums.same, sums.by_chance, kCopied, subject)
                 : solved(call, 1 - sums.loss / sums.trivial, sums.samples, updates, state.planned,
                          training, kSolved, subject);
    });
  }

  // --------------------------------------------------------------------------- columns

  static void judge_columns(const Config& cfg, State& state, const StepSet& set,
                            const LedgerSet& train, SetReport& report) {
    state.classes = train.field("classes");
    if (!train.has("read")) return;
    const double rows = train.field("read");
    const std::vector<KnownColumn> columns = known_columns(train, cfg.fit, cfg.strong_fit);
    const bool enough = rows >= kLeastRows && !columns.empty();
    const bool found = enough && columns[0].rank > 0;
    state.named = found;
    state.ordered.clear();
    for (const KnownColumn& one : columns) {
      if (one.rank == 0 && one.fit > cfg.strong_fit) state.ordered.push_back(one.name);
    }
    const std::string name = "ledger/data/train";
    if (enough) {
      state.card.put(
          set, name, found,
          {{"largest_fit", columns[0].fit}, {"shifted_fit", columns[0].shifted}, {"rows", rows}});
    }
    report.evaluated({{"metric", name}}, name,
                     !enough ? kInsufficient
                     : found ? hit(kTargetInInput)
                             : kOk,
                     [&](const Subject&, unsigned) {
                       const int rank = columns[0].rank;
                       return known_column(columns, rows, state.classes > 2, train.has("batches"),
                                           rank == 3   ? KnownColumn::kCopied
                                           : rank == 2 ? cfg.fit
                                                       : cfg.strong_fit);
                     });
  }

  // --------------------------------------------------------------------------- rows

  static void judge_overlap(const Config& cfg, State& state, const StepSet& set,
                            const std::string& name, const LedgerSet& data, SetReport& report) {
    const RowCounts counts{.compared = data.field("compared"),
                           .seen = data.field("seen"),
                           .train_compared = data.field("train_compared"),
                           .train_repeats = data.field("train_repeats"),
                           .same = data.field("same"),
                           .again = data.has("early"),
                           .train_distinct = data.field("train_distinct"),
                           .early = data.field("early"),
                           .early_seen = data.field("early_seen"),
                           .repeats = data.field("repeats"),
                           .look = data.field("look", 1)};
    const SeenRows found = seen_rows(counts, cfg.overlap, kHalfAlpha);
    Verdict verdict = kOk;
    if (found.answer == SeenRows::not_applicable) verdict = kNotApplicable;
    if (found.answer == SeenRows::too_few) verdict = kInsufficient;
    if (found.answer == SeenRows::seen) verdict = hit(kOverlap);
    const std::string unit = std::string(kLedgerData) + name;
    if (found.answer == SeenRows::fine || found.answer == SeenRows::seen) {
      std::map<std::string, double> numbers{
          {"rows", data.field("compared")}, {"seen", data.field("seen")}, {"limit", found.limit}};
      if (data.has("early") && data.field("train_compared") <= data.field("train_distinct")) {
        numbers.emplace("training_rows_that_came_again", 0);  // one pass so far, or augmented
      }
      if (data.field("training_rows") > 0) {
        numbers.emplace("of_training_besides", data.field("training_rows"));
      }
      state.card.put(set, unit, found.answer == SeenRows::seen, std::move(numbers));
    }
    report.evaluated({{"metric", unit}}, name, verdict, [&](const Subject&, unsigned) {
      return rows_among_training(name, data, found.limit, found.many);
    });
  }

  static core::ValueMap summary(const States& states, const Scope&) {
    return states.empty() ? core::ValueMap{} : states.begin()->second.card.told();
  }

  // --------------------------------------------------------------------------- gains

  /// Of the metrics of the round, the one that is least better than its constant; 1: none is known.
  static double least_skill(const Brought& brought) {
    double least = 1;
    for (const auto& [call, fields] : brought.calls) {
      const auto loss = fields.find("loss");
      const auto trivial = fields.find("trivial");
      if (loss == fields.end() || trivial == fields.end() || !(trivial->second > 0)) continue;
      least = std::min(least, 1 - loss->second / trivial->second);
    }
    return least;
  }

  static void judge_gains(State& state, const std::map<std::string, double>& gains, double skill,
                          SetReport& report) {
    double sum = 0;
    std::string first;
    double most = 0;
    double next = 0;
    for (const auto& [feature, gain] : gains) {
      sum += gain;
      if (state.feature.empty()) state.feature = feature;
      state.several = state.several || state.feature != feature;
      if (gain > most) {
        next = std::exchange(most, gain);
        first = feature;
      } else {
        next = std::max(next, gain);
      }
    }
    const bool several = state.classes > 2;
    const bool large = several ? most > kMostOfClasses * sum && most > kTimesNext * next
                               : most > kAlone * sum && next < kNext * sum;
    const bool alone = sum > 0 && large && skill > kLeastSkill;
    state.rounds = !alone ? 0 : state.column == first ? std::min(state.rounds + 1, kRounds) : 1;
    state.column = first;
    Verdict verdict = alone ? kInsufficient : kOk;
    const bool ordered =
        std::find(state.ordered.begin(), state.ordered.end(), first) != state.ordered.end();
    if (!(sum > 0) || state.named || ordered || !state.several) verdict = kNotApplicable;
    if (verdict.outcome == EvaluationOutcome::insufficient_data && state.rounds >= kRounds) {
      verdict = hit(kOneColumn);
    }
    const std::string unit = "feature_importance/total_gain";
    report.evaluated({{"metric", unit}}, unit, verdict, [&](const Subject& subject, unsigned) {
      return one_gain(first, most / sum, next / sum, several ? kMostOfClasses : kAlone, subject);
    });
  }
};

}  // namespace

RuleDescriptor leak() {
  return {
      .name = "leak",
      .original_name = "Leak",
      .title =
          "The task is too easy: the inputs hold the target, or training holds evaluation rows.",
      .unit = "metric",
      .needs = "scalars ledger/… of the hook or of a booster's callback",
      .presets = "",
      .severity = core::Severity::warning,
      .version = "2",
      .groups = group::kDefault | group::kPyTorch | group::kXGBoost,
      .read = &read_step_set_rule<Leak>};
}

}  // namespace tocsin::rules
