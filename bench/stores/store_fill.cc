// A full store, written through the writers that the program itself has: what bench/stores/opens.py opens.
//
//   store_fill FOLDER SOURCE RUNS BYTES VALUES    insights.db and curves.db in FOLDER, of SOURCE as the file says
//     of what it reads; RUNS runs, the first with VALUES values and a series of 26 points; until curves.db has BYTES
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "core/system_clock.h"
#include "ingest/ingest.h"
#include "insights/insights.h"

namespace {

using namespace tocsin;  // a program of one file
using namespace std::chrono_literals;

constexpr std::int64_t kTensors = 1000;
constexpr std::int64_t kNumbers = 12;  // of a row of a tensor, beside its time and count
constexpr std::size_t kRowsOfACommit = 60'000;
constexpr std::int64_t kPoints = 26;  // of the sparse series
constexpr int kIssues = 5;            // of a run
constexpr std::int64_t kMeasuredEvery = 20;
constexpr auto kLongRun = 10h;

void must(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "store_fill: %s failed\n", what);
  std::exit(2);
}

std::int64_t micros_of(core::WallTime time) {
  return std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count();
}

// Numbers as a training has them: in f32, so that three of their eight bytes say nothing.
class Tensors {
 public:
  std::span<const double> row(std::int64_t time) {
    for (std::size_t at = 0; at < row_.size(); ++at) row_[at] = number();
    row_[insights::tensor_column::time] = static_cast<double>(time);
    for (const std::size_t at : {insights::tensor_column::nan, insights::tensor_column::posinf,
                                 insights::tensor_column::neginf})
      row_[at] = 0;
    row_[insights::tensor_column::count] = 4096;
    return row_;
  }

 private:
  float number() { return std::uniform_real_distribution<float>(0.5F, 2.0F)(chance_); }
  std::mt19937 chance_{1};
  std::array<double, insights::tensor_column::columns> row_{};
};

class Fill {
 public:
  Fill(const std::string& folder, const std::string& source) : path_(folder + "/curves.db") {
    insights::SetAside moved;
    auto series = insights::SeriesWriter::open(path_, source, moved);
    auto events = insights::EventWriter::open(folder + "/insights.db", source, moved);
    must(series && events, "open");
    must(moved.moved_to.empty(), "going on with the stores that were there");
    series_ = std::move(*series);
    events_ = std::move(*events);
  }

  static core::RunUid uid(std::int64_t number) {
    return core::run_uid_for("bench", std::to_string(number));
  }

  void tensors(std::int64_t number, std::int64_t steps, core::WallTime begin) {
    const core::RunUid run = uid(number);
    const insights::SegmentOf segment{run, core::name_hash("worker_0"), 1, 1, 0};
    series_->name_worker(run, segment.worker, "worker_0");
    for (std::int64_t tensor = 0; tensor < kTensors; ++tensor) {
      const std::string text = "gradient/model.layers." + std::to_string(tensor) + ".weight";
      series_->name(run, insights::FamilyKind::tensor,
                    {hash_of(tensor), text, core::Role::gradient, "", 0, "64×64", "gradients"});
    }
    series_->name(run, insights::FamilyKind::scalar, {kLoss, "loss", core::Role::loss, "", -1});
    const auto step_length = kLongRun / std::max<std::int64_t>(1, steps);
    for (std::int64_t step = 0; step < steps; ++step) {
      const std::int64_t time = micros_of(begin + step * step_length);
      for (std::int64_t tensor = 0; tensor < kTensors; ++tensor)
        series_->add(segment, insights::FamilyKind::tensor, hash_of(tensor), core::Mode::train,
                     step, rows_.row(time));
      const std::array<double, 2> loss{1.0 / static_cast<double>(1 + step),
                                       static_cast<double>(time)};
      series_->add(segment, insights::FamilyKind::scalar, kLoss, core::Mode::train, step, loss);
      if (series_->waiting() < kRowsOfACommit) continue;
      series_->heard(run, time);
      must(series_->commit({}).has_value(), "commit");
    }
    series_->heard(run, micros_of(begin + kLongRun));
    must(series_->commit({}).has_value(), "commit");
  }

  void sparse(std::int64_t number, std::int64_t steps, core::WallTime begin) {
    const insights::SegmentOf segment{uid(number), core::name_hash("worker_0"), 1, 1, 0};
    series_->name(segment.run, insights::FamilyKind::scalar,
                  {kSparse, "eval_loss", core::Role::loss, "", -1});
    for (std::int64_t at = 0; at < kPoints; ++at) {
      const std::array<double, 2> values{static_cast<double>(at),
                                         static_cast<double>(micros_of(begin + at * 20min))};
      series_->add(segment, insights::FamilyKind::scalar, kSparse, core::Mode::train,
                   at * steps / kPoints, values);
    }
    must(series_->commit({}).has_value(), "commit");
  }

  void events(std::int64_t number, core::WallTime begin) {
    core::JobEvent job;
    job.run.uid = uid(number);
    job.run.job = "job-" + std::to_string(number % 50);
    job.labels = {{"team", "team-" + std::to_string(number % 7)}};
    job.world_size = 8;
    job.time = begin;
    job.started_at = begin;
    keep(ingest::encode_registry(job, "bench"), job);
    for (int at = 0; at < kIssues; ++at) {
      core::Issue issue;
      issue.run = job.run;
      issue.rule = issue.rule_type = "exploding_tensor";
      issue.event_id = "iss_" + std::to_string(number) + "_" + std::to_string(at);
      issue.severity = core::Severity::error;
      issue.labels = {{"rule", issue.rule},
                      {"run_uid", core::to_text(job.run.uid)},
                      {"tensor", "gradient/model.layers." + std::to_string(at) + ".weight"}};
      issue.summary =
          "17 values of gradient/model.layers." + std::to_string(at) + " are not finite";
      issue.time = issue.starts_at = begin + at * 1h;
      issue.step = at * 100;
      keep(ingest::encode_issue(issue), issue);
    }
    job.phase = core::JobPhase::ended;
    job.time = begin + kLongRun;
    job.ended_at = job.time;
    job.outcome = number % 3 == 0 ? "failed" : "completed";
    keep(ingest::encode_registry(job, "bench"), job);
  }
  void keep_events() { must(events_->commit({}).has_value(), "commit of events"); }

  // What is in the write-ahead log, too.
  [[nodiscard]] double bytes() const {
    const auto reader = insights::SeriesReader::open(path_);
    must(reader.has_value(), "open to read");
    return static_cast<double>((*reader)->size().bytes);
  }

 private:
  static constexpr std::uint64_t kLoss = 1;
  static constexpr std::uint64_t kSparse = 2;
  static std::uint64_t hash_of(std::int64_t tensor) {
    return static_cast<std::uint64_t>(tensor) + 100;
  }
  template <typename Event>
  void keep(core::OutRecord record, const Event& event) {
    insights::KeptRecord kept;
    kept.record = std::move(record);
    kept.offset = ++offset_;
    kept.timestamp = core::nanoseconds(event.time);
    events_->saw(kept, event);
  }

  std::string path_;
  std::unique_ptr<insights::SeriesWriter> series_;
  std::unique_ptr<insights::EventWriter> events_;
  Tensors rows_;
  std::int64_t offset_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fprintf(stderr, "usage: store_fill FOLDER SOURCE RUNS BYTES VALUES\n");
    return 2;
  }
  const auto runs = std::max<std::int64_t>(2, std::atoll(argv[3]));
  const double bytes = std::atof(argv[4]);
  const std::int64_t steps = std::atoll(argv[5]) / kTensors / kNumbers;
  const core::WallTime now = core::SystemClock().now();
  Fill fill(argv[1], argv[2]);
  fill.tensors(0, steps, now - kLongRun);
  fill.sparse(0, steps, now - kLongRun);
  fill.events(0, now - kLongRun);
  const double of_a_step = fill.bytes() / static_cast<double>(steps);
  std::int64_t length = 1;
  for (std::int64_t number = 1; number < runs; ++number) {
    // What is still to be written, in equal parts.
    if (number % kMeasuredEvery == 1)
      length = static_cast<std::int64_t>((bytes - fill.bytes()) / of_a_step /
                                         static_cast<double>(runs - number));
    const core::WallTime begin = now - kLongRun - number * 2min;
    fill.tensors(number, std::max<std::int64_t>(1, length), begin);
    fill.events(number, begin);
  }
  fill.keep_events();
  std::printf("%s %lld\n", core::to_text(Fill::uid(0)).c_str(),
              static_cast<long long>(steps) * kTensors * kNumbers);
}
