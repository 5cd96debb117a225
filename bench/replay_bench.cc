// A recorded run judged from the journal, rows per CPU-second: `tocsin evaluate --from` beside the
// same frames in memory and the same engine, and where the difference goes (reading, decoding). In
// turns, the best of each. usage: replay_bench [folder for a journal of 150 MB]
#include <sys/resource.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "app/cli/rule_choice.h"
#include "app/recordings/recording.h"
#include "app/replay/judge.h"
#include "bench/bench_report.h"
#include "core/log.h"
#include "core/telemetry.h"
#include "core/topics.h"
#include "ingest/ingest.h"

namespace {

using namespace tocsin;  // a program of one file
using namespace std::chrono_literals;

constexpr int kTensors = 200;
constexpr int kSteps = 6000;
constexpr int kRounds = 5;
constexpr double kRows = static_cast<double>(kTensors) * kSteps;
constexpr double kTarget = 5e6;  // rows per CPU-second
constexpr std::int64_t kStart = 1'767'323'045'000'000'000;
constexpr std::int64_t kStep = 200'000'000;

core::NullLog quiet;
core::NullTelemetry uncounted;

void must(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "replay_bench: %s failed\n", what);
  std::exit(2);
}

double cpu_seconds() {
  struct rusage used {};
  ::getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

using Send = std::function<void(std::string)>;

/// One healthy run as a hook sends it: per step its tensors, its loss, its step-end.
void run_of(const Send& send) {
  ingest::FrameWriter writer;
  core::FrameHeader header;
  header.run = core::run_uid_for("bench", "replay");
  header.world_size = 1;
  header.mode = core::Mode::train;
  header.worker = core::name_hash("worker_0");
  header.incarnation = 1;
  std::vector<core::SummaryRow> rows(kTensors);
  const auto finish = [&](ingest::FrameWriter& frame) {
    const auto bytes = frame.finish();
    must(bytes.has_value(), "a frame");
    send({reinterpret_cast<const char*>(bytes->data()), bytes->size()});
  };
  for (int step = 0; step < kSteps; ++step) {
    header.step = header.global_step = step;
    header.time = kStart + step * kStep;
    const double change = 1 + 0.1 * std::sin(step);
    for (int i = 0; i < kTensors; ++i) {
      core::SummaryRow& row = rows[static_cast<std::size_t>(i)];
      row = {};
      row.name = core::name_hash("layer" + std::to_string(i));
      row.count = 4096;
      row.sum = change;
      row.sumsq = 40.96 * change;
      row.m2 = 40 * change;
      row.abs_sum = 409.6 * change;
      row.min = -change;
      row.max = change;
      row.negative = 2000;
      row.meta = core::meta::make(core::Dtype::f32,
                                  i % 2 == 0 ? core::Role::gradient : core::Role::weight);
    }
    ++header.sequence;
    finish(writer.summary(header, rows));
    const core::ScalarRow loss{core::name_hash("loss"),
                               step,
                               step,
                               header.time,
                               10.0 / (1 + step),
                               core::meta::make(core::Dtype::f64, core::Role::loss)};
    ++header.sequence;
    finish(writer.scalars(header, {&loss, 1}));
    const core::StepEndRow end{step, step, header.time, header.time + kStep / 2, 1, 0};
    ++header.sequence;
    finish(writer.step_ends(header, {&end, 1}));
  }
}

void record(const std::string& folder) {
  ingest::TransportConfig cfg;
  cfg.journal = folder;
  auto transport = ingest::Transport::open(cfg, {}, quiet, uncounted);
  must(transport.has_value(), "opening the journal");
  auto publisher = (*transport)->publisher({});
  must(publisher.has_value(), "a publisher");
  const std::string key = core::to_text(core::run_uid_for("bench", "replay"));
  std::int64_t number = 0;
  run_of([&](std::string bytes) {
    core::OutRecord record{core::topic::kTelemetry, key, std::move(bytes)};
    record.timestamp = kStart + number++ / 3 * kStep;
    while (!(*publisher)->publish(record)) must((*publisher)->flush(10s).has_value(), "writing");
  });
  must((*publisher)->flush(30s).has_value(), "writing");
}

/// CPU seconds of one reading of the journal.
double reading(const std::string& folder, core::RecordHandler handle,
               core::FunctionRef<void()> between) {
  const double begin = cpu_seconds();
  auto transport = ingest::Transport::open_recording(folder, {}, quiet, uncounted);
  must(transport.has_value(), "opening the recording");
  must(app::read_recording(**transport, core::topic::kTelemetry, {}, handle, between).has_value(),
       "reading");
  return cpu_seconds() - begin;
}

embedded::ChosenRules rules_named(const char* names) {
  embedded::ChosenRules rules;
  must(app::choose_rules({"", names, ""}, rules) == 0, "the rules");
  return rules;
}

std::unique_ptr<app::Judge> judge_of(const embedded::ChosenRules& rules) {
  auto judge = app::Judge::create(rules, nullptr);
  must(judge.has_value(), "the engine");
  return std::move(*judge);
}

double from_journal(const std::string& folder, const embedded::ChosenRules& rules) {
  const auto judge = judge_of(rules);
  double cpu = reading(
      folder, [&](const core::RecordView& record) { judge->handle(record); },
      [&] { judge->collect(); });
  const double begin = cpu_seconds();
  judge->finish();
  must(judge->judgement().events.empty(), "a healthy run");
  return cpu + cpu_seconds() - begin;
}

double from_memory(const std::vector<std::string>& frames, const embedded::ChosenRules& rules) {
  const auto judge = judge_of(rules);
  const double begin = cpu_seconds();
  core::RecordView view;
  view.topic = view.stream = core::topic::kTelemetry;
  for (const std::string& frame : frames) {
    view.timestamp = kStart + view.offset / 3 * kStep;
    view.value = std::as_bytes(std::span(frame.data(), frame.size()));
    judge->handle(view);
    if (++view.offset % 1024 == 0) judge->collect();
  }
  judge->finish();
  return cpu_seconds() - begin;
}

bool measure(const std::string& folder) {
  record(folder);
  std::vector<std::string> frames;
  run_of([&](std::string bytes) { frames.push_back(std::move(bytes)); });
  const auto one = rules_named("exploding_tensor");
  const auto group = rules_named("default");
  double read = 1e9, decode = 1e9, one_memory = 1e9, one_journal = 1e9, all_memory = 1e9,
         all_journal = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    std::uint64_t sum = 0;
    const auto nothing = [] {};
    read = std::min(read, reading(
                              folder,
                              [&](const core::RecordView& record) {
                                sum += static_cast<std::uint64_t>(record.value.back());
                              },
                              nothing));
    ingest::JsonScalarDecoder json;
    const auto count = [&](const core::FrameView& frame, const core::FrameBody&) {
      sum += frame.rows();
    };
    decode =
        std::min(decode, reading(
                             folder,
                             [&](const core::RecordView& record) {
                               must(!ingest::decode_telemetry(record, json, count), "decoding");
                             },
                             nothing));
    must(sum > 0, "reading");
    one_memory = std::min(one_memory, from_memory(frames, one));
    one_journal = std::min(one_journal, from_journal(folder, one));
    all_memory = std::min(all_memory, from_memory(frames, group));
    all_journal = std::min(all_journal, from_journal(folder, group));
  }
  bench::figure("read the journal, touch one byte per record", kRows / read, "rows/CPU-s");
  bench::figure("and decode each frame", kRows / decode, "rows/CPU-s");
  const auto shown = [](const std::string& rules, double memory, double journal) {
    bench::figure(rules + ", frames in memory", kRows / memory, "rows/CPU-s");
    bench::judged(rules + ", from the journal", kRows / journal, "rows/CPU-s", kTarget, true);
    bench::figure("  of the loop in memory", memory / journal, "");
    return kRows / journal >= kTarget;
  };
  const bool first = shown("one rule", one_memory, one_journal);
  return shown("group default", all_memory, all_journal) && first;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string base = argc > 1 ? argv[1] : std::filesystem::temp_directory_path().string();
  const std::string folder = base + "/replay_bench-" + std::to_string(::getpid());
  const bool met = measure(folder);
  std::filesystem::remove_all(folder);
  return met ? 0 : 1;
}
