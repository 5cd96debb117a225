#include "app/cli/reproduce_command.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "app/cli/looking.h"
#include "app/cli/rule_choice.h"
#include "app/process/exit_code.h"
#include "app/recordings/evidence_copy.h"
#include "app/recordings/recording.h"
#include "app/recordings/records_of_run.h"
#include "app/recordings/slice.h"
#include "app/replay/judge.h"
#include "app/replay/rule_items.h"
#include "app/view/view_words.h"
#include "core/json.h"
#include "core/labels.h"
#include "core/text_table.h"
#include "core/topics.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;

constexpr auto kReproduceWait = std::chrono::milliseconds{100};
constexpr int kReproducePatience = 300;  // waits in a row without an event
// Topics are read from their beginning: whoever waits for that is told that it goes on.
constexpr std::uint64_t kSayEvery = 200'000;
// Records that the verdict waited for (the end of a step, other workers) come with it.
constexpr core::Duration kBehind = 2min;
// Of a run whose beginning is not in the topics any more: names are sent again every five minutes.
constexpr core::Duration kBefore = 6min;

/// Says how far reading has come, on stderr.
class Progress {
 public:
  explicit Progress(const char* what) : what_(what) {}
  void operator()(std::uint64_t records) {
    if (records / kSayEvery == said_) return;
    said_ = records / kSayEvery;
    std::cerr << "tocsin: " << records << " " << what_ << " read so far" << std::endl;
  }

 private:
  const char* what_;
  std::uint64_t said_ = 0;
};

/// What the topics say of the issue and of its run.
struct Told {
  std::optional<core::Issue> issue;  // the report to be reproduced
  std::vector<std::string> keys;     // of issues that the id fits: more than one is no answer
  std::map<std::pair<core::RunUid, std::uint32_t>, core::WallTime> started;
};

// A report named by its own id is that report; an issue named by its key is its newest firing one.
void take_issue(const core::Issue& issue, const std::string& id, Told& told) {
  if (issue.status != core::IssueStatus::firing) return;
  const std::string key = core::issue_key(issue.labels);
  if (!goes_by(key, issue, id)) return;
  if (std::find(told.keys.begin(), told.keys.end(), key) == told.keys.end()) {
    told.keys.push_back(key);
  }
  told.issue = issue;
}

core::Result<Told> read_told(ingest::Transport& transport, const std::string& id) {
  ingest::SourceOptions options;
  options.topics = {core::topic::kIssues, core::topic::kRegistry};
  options.start = ingest::Start::beginning;
  auto source = transport.source(options);
  if (!source) return source.error();
  Told out;
  std::uint64_t records = 0;
  const auto apply = [&](const core::RecordView& record) {
    ++records;
    if (record.tombstone) return;
    const auto decoded = ingest::decode_event(record);
    if (!decoded) return;
    if (const auto* issue = std::get_if<core::Issue>(&decoded->event)) {
      take_issue(*issue, id, out);
    } else if (const auto* job = std::get_if<core::JobEvent>(&decoded->event)) {
      if (job->started_at) out.started[{job->run.uid, job->run.attempt}] = *job->started_at;
    }
  };
  Progress progress("events");
  for (int waits = 0; waits < kReproducePatience;) {
    const auto read = (*source)->poll(kReproduceWait, 1024, apply);
    if (!read && read.error().code != core::Code::data_loss) return read.error();
    if (read && *read == 0 && (*source)->at_end()) return out;
    waits = read && *read > 0 ? 0 : waits + 1;
    progress(records);
  }
  return core::Error{core::Code::deadline_exceeded,
                     "nothing came of the topics for half a minute, and they are not at their end"};
}

/// Why the command ends here.
struct Refused {
  int code = kFailed;
  std::string why;
};

class Reproduction {
 public:
  explicit Reproduction(const ReproduceOptions& options) : options_(options) {}
  int run();

 private:
  bool finds_both_in(const std::string& place);
  std::optional<Refused> find();
  std::optional<Refused> choose();
  std::optional<Refused> open_directory(const std::string& directory);
  std::optional<Refused> read();
  std::optional<Refused> judge();
  [[nodiscard]] Span span() const;
  void find_again();
  int show() const;
  [[nodiscard]] std::vector<core::TableRow> rows() const;
  [[nodiscard]] bool same() const;
  [[nodiscard]] std::string source() const {
    return (directory_ != nullptr ? *directory_ : looking_.transport()).describe();
  }
  [[nodiscard]] std::string why_not() const;

  const ReproduceOptions& options_;
  core::NullLog log_;
  core::NullTelemetry telemetry_;
  Looking looking_;
  Told told_;
  embedded::ChosenRules rules_;
  bool both_in_from_ = false;                     // the issue was found where --from points
  std::unique_ptr<ingest::Transport> directory_;  // --from, or a copy that was kept
  std::unique_ptr<Judge> judge_;
  std::unique_ptr<Slice> slice_;  // --save
  const core::Issue* again_ = nullptr;
  std::int64_t first_read_ = -1;  // offset of the first record of that partition that was there
  std::uint64_t gaps_ = 0;
};

// A directory may hold the issue beside its telemetry, or, as a slice does, telemetry alone.
bool Reproduction::finds_both_in(const std::string& place) {
  if (!looking_.open("", place) || !looking_.transport().ping(5s)) return false;
  auto told = read_told(looking_.transport(), options_.id);
  if (!told || told->keys.size() != 1) return false;
  told_ = std::move(*told);
  return true;
}

std::optional<Refused> Reproduction::find() {
  const bool place_alone =
      !options_.from.empty() && options_.out.empty() && options_.config_file.empty();
  both_in_from_ = place_alone && finds_both_in(options_.from);
  if (both_in_from_) return std::nullopt;
  if (options_.from.starts_with("kafka://")) {
    return Refused{kFailed, "no issue with ID " + options_.id + " in " + options_.from +
                                "; see: tocsin issues list --all --from " + options_.from};
  }
  if (const auto open = looking_.open(options_.config_file, options_.out); !open) {
    return Refused{refuse(open.error()), ""};
  }
  if (const auto reached = looking_.transport().ping(5s); !reached) {
    return Refused{kUnreachable, reached.error().message};
  }
  auto told = read_told(looking_.transport(), options_.id);
  if (!told) return Refused{kUnreachable, told.error().message};
  told_ = std::move(*told);
  if (told_.keys.size() == 1) return std::nullopt;
  return Refused{kFailed,
                 (told_.keys.empty() ? "no issue" : std::to_string(told_.keys.size()) + " issues") +
                     " with ID " + options_.id + "; see: tocsin issues list --all"};
}

std::optional<Refused> Reproduction::choose() {
  // Engine, labels and plug-ins are those of the cluster, the rule is that of the issue.
  if (const int code = choose_rules({options_.config_file, "", ""}, rules_); code != kOk) {
    return Refused{code, ""};
  }
  const core::Issue& issue = *told_.issue;
  auto rule = rule_of(issue);
  if (!rule) return Refused{kFailed, rule.error().message};
  rules_.rules = {};
  rules_.rules.rules.push_back(std::move(*rule));
  if (issue.labels.has("cluster")) rules_.cluster = issue.labels.get("cluster");
  const core::RunUid run = issue.run.uid;
  auto judge = Judge::create(
      rules_, run.nil() ? RunFilter() : [run](const core::RunUid& uid) { return uid == run; });
  if (!judge) return Refused{kConfiguration, judge.error().message};
  judge_ = std::move(*judge);
  if (options_.save.empty()) return std::nullopt;
  auto slice = Slice::create(options_.save);
  if (!slice) return Refused{kUsage, "--save: " + slice.error().message};
  slice_ = std::move(*slice);
  return std::nullopt;
}

Span Reproduction::span() const {
  Span out;
  if (directory_ != nullptr) return out;
  const core::Issue& issue = *told_.issue;
  const auto started = told_.started.find({issue.run.uid, issue.run.attempt});
  const core::WallTime first =
      started != told_.started.end() ? started->second : issue.evidence.window.first_time;
  if (core::nanoseconds(first) != 0) out.from.time = first - kBefore;
  const core::WallTime decided = std::max(issue.evaluated_at, issue.time);
  if (core::nanoseconds(decided) != 0) out.to.time = decided + kBehind;
  if (!issue.evidence.data_refs.empty()) {
    out.partition = issue.evidence.data_refs.front().partition;
  }
  return out;
}

std::optional<Refused> Reproduction::open_directory(const std::string& directory) {
  auto opened = ingest::Transport::open_recording(directory, {}, log_, telemetry_);
  if (!opened) return Refused{kUnreachable, opened.error().message};
  directory_ = std::move(*opened);
  return std::nullopt;
}

std::optional<Refused> Reproduction::read() {
  const core::RunUid run = told_.issue->run.uid;
  auto judge = Judge::create(
      rules_, run.nil() ? RunFilter() : [run](const core::RunUid& uid) { return uid == run; });
  if (!judge) return Refused{kConfiguration, judge.error().message};
  judge_ = std::move(*judge);
  ingest::Transport& from = directory_ != nullptr ? *directory_ : looking_.transport();
  RecordsOfRun of_run(run);
  std::uint64_t records = 0;
  Progress progress("records of telemetry");
  const auto take = [&](const core::RecordView& record) {
    ++records;
    if (first_read_ < 0) first_read_ = record.offset;
    judge_->handle(record);
    if (slice_ != nullptr && of_run(record)) slice_->add(record);
  };
  const auto between = [&] {
    judge_->collect();
    progress(records);
  };
  const auto end = read_recording(from, core::topic::kTelemetry, span(), take, between);
  if (!end) return Refused{kUnreachable, end.error().message};
  gaps_ = end->gaps;
  judge_->finish();
  return std::nullopt;
}

// From the topic, else from the copy that `evidence:` has kept.
std::optional<Refused> Reproduction::judge() {
  if (!options_.from.empty() && !both_in_from_) {
    if (auto refused = open_directory(options_.from)) return refused;
  }
  if (auto refused = read()) return refused;
  const std::string kept = evidence_directory(looking_.evidence_dir(), *told_.issue);
  if (directory_ == nullptr && judge_->judgement().rows.empty() && is_kept(kept)) {
    if (auto refused = open_directory(kept)) return refused;
    if (auto refused = read()) return refused;
  }
  if (slice_ == nullptr) return std::nullopt;
  const auto closed = slice_->close();
  if (closed) return std::nullopt;
  return Refused{kUnreachable, options_.save + ": " + closed.error().message};
}

// The same report, else the same issue at another place.
void Reproduction::find_again() {
  const core::Issue& issue = *told_.issue;
  const std::string key = core::issue_key(issue.labels);
  for (const core::Issue& one : judge_->judgement().events) {
    if (one.event_id == issue.event_id) {
      again_ = &one;
      return;
    }
    if (again_ == nullptr && one.status == core::IssueStatus::firing &&
        one.run.attempt == issue.run.attempt && core::issue_key(one.labels) == key) {
      again_ = &one;
    }
  }
}

std::string text_of(double value) { return core::to_json(core::Value(value)); }

std::string text_of(const std::optional<std::int64_t>& step) {
  return step ? std::to_string(*step) : "–";
}

bool equal(double one, double other) {
  return one == other || (std::isnan(one) && std::isnan(other));
}

bool Reproduction::same() const {
  const core::Issue& issue = *told_.issue;
  return again_ != nullptr && again_->event_id == issue.event_id && again_->kind == issue.kind &&
         again_->step == issue.step &&
         equal(again_->evidence.observed.value, issue.evidence.observed.value);
}

std::vector<core::TableRow> Reproduction::rows() const {
  const auto column = [](const core::Issue* issue, const auto& field) {
    return issue == nullptr ? std::string("–") : core::visible(field(*issue));
  };
  std::vector<core::TableRow> out{{"", "TOLD", "NOW"}};
  const auto add = [&](const char* name, const auto& field) {
    out.push_back({name, column(&*told_.issue, field), column(again_, field)});
  };
  add("event", [](const core::Issue& one) { return one.event_id; });
  add("rule", [](const core::Issue& one) { return one.rule_type + " " + one.rule_version; });
  add("parameters", [](const core::Issue& one) { return one.params_hash; });
  add("step", [](const core::Issue& one) { return text_of(one.step); });
  add("observed", [](const core::Issue& one) {
    return one.evidence.observed.name + " " + text_of(one.evidence.observed.value);
  });
  add("summary", [](const core::Issue& one) { return one.summary; });
  return out;
}

std::string Reproduction::why_not() const {
  const Judgement& judgement = judge_->judgement();
  const core::Issue& issue = *told_.issue;
  if (judgement.rows.empty()) {
    return "no telemetry of the run is there any more (topics.telemetry_retention); a directory "
           "that "
           "was kept is judged with --from";
  }
  const auto& refs = issue.evidence.data_refs;
  if (directory_ == nullptr && !refs.empty() && first_read_ > refs.front().first) {
    return "the records from " + std::to_string(refs.front().first) + " on are there only from " +
           std::to_string(first_read_) + " on";
  }
  if (directory_ != nullptr && options_.from.empty()) {
    return "the topic has it no more, and the copy that was kept begins evidence.lead before the "
           "window: what looks back further cannot be judged from it";
  }
  if (gaps_ > 0) return std::to_string(gaps_) + " gaps in what was read";
  return "what is there does not lead to it: rules that count hours without a record, or that "
         "other "
         "processes have a part in, can be judged where they run only";
}

int Reproduction::show() const {
  const core::Issue& issue = *told_.issue;
  const bool good = same();
  if (options_.json) {
    const auto event = [](const core::Issue* one) {
      if (one == nullptr) return core::Value();
      const auto value = core::parse_json(ingest::issue_json(*one), 1U << 20);
      return value ? *value : core::Value();
    };
    core::ValueMap out{{"reproduced", good},
                       {"id", issue.event_id},
                       {"records", judge_->judgement().records},
                       {"source", source()},
                       {"told", event(&issue)},
                       {"now", event(again_)},
                       {"reason", good ? core::Value() : core::Value(why_not())}};
    if (slice_ != nullptr) out.emplace_back("saved", slice_->directory());
    std::cout << core::to_json(out) << "\n";
    return good ? kOk : kFailed;
  }
  std::cout << (good ? "reproduced" : "not reproduced") << ", from " << judge_->judgement().records
            << " records\n"
            << core::text_table(rows());
  if (!good) std::cout << why_not() << "\n";
  if (slice_ != nullptr) {
    std::cout << "saved " << slice_->records() << " records, " << slice_->bytes() << " bytes, in "
              << slice_->directory() << "\n";
  }
  return good ? kOk : kFailed;
}

int Reproduction::run() {
  auto refused = find();
  if (!refused) refused = choose();
  if (!refused) refused = judge();
  if (refused) {
    if (!refused->why.empty()) std::cerr << "tocsin: " << refused->why << "\n";
    return refused->code;
  }
  find_again();
  return show();
}

}  // namespace

int reproduce_command(const ReproduceOptions& options) { return Reproduction(options).run(); }

}  // namespace tocsin::app
