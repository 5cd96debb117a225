// Framed statistics of tensors into the store of curves, by the calls that the program makes when records
// arrive: values of a CPU-second, beside decoding the same records alone and plain rows of SQLite.
//
// A value is one of the 12 numbers of a tensor that the hook sends by default (docs/statistics.md). The store
// keeps 14 of each row: statistics made of these, and the time.
#include <sqlite3.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "bench/bench_report.h"
#include "bench/healthy_rows.h"
#include "ingest/ingest.h"
#include "insights/insights.h"

namespace {

using namespace tocsin;  // a program of one file

constexpr std::uint32_t kWorkers = 4;
constexpr std::size_t kTensors = 200;  // of a frame, and of a worker
constexpr std::int64_t kSteps = 2048;
constexpr std::int64_t kStepsOfASlice = 64;  // frames that are in memory at once
constexpr std::int64_t kSlicesOfPlain = 4;   // the baseline has enough of them
constexpr std::int64_t kStepsOfALive = 4;    // that a second brings
constexpr std::int64_t kSlicesOfLive = 12;   // in which each series closes a chunk
constexpr std::size_t kBytesOfACommit = std::size_t{16}
                                        << 20U;  // app/api/curves_feed.cc, which catches up
constexpr double kValuesOfARow = 12;
constexpr double kValuesOfASlice = kValuesOfARow * kWorkers * kTensors * kStepsOfASlice;
constexpr std::int64_t kBegin = 1'700'000'000'000'000'000;

// Of all threads of the process.
double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

void must(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "ingest_bench: %s failed\n", what);
  std::exit(2);
}

std::string tensor_name(std::size_t tensor) {
  return "gradient/model.layers." + std::to_string(tensor) + ".weight";
}

// Frames as the hook packs them: one of each worker and step. Norms fall and are noisy, the least and the
// greatest element are floats, counts move a little.
class Producer {
 public:
  explicit Producer(const std::string& run) : run_(core::run_uid_for("bench", run)) {
    for (std::size_t at = 0; at < kTensors; ++at)
      rows_.push_back(bench::healthy_row(tensor_name(at), core::Role::gradient));
  }

  std::vector<std::string> names() {
    std::vector<core::DictionaryEntry> entries;
    std::vector<std::string> texts;
    for (std::size_t at = 0; at < kTensors; ++at) texts.push_back(tensor_name(at));
    for (const std::string& text : texts) {
      core::DictionaryEntry entry;
      entry.hash = core::name_hash(text);
      entry.type = core::DictionaryType::tensor;
      entry.role = core::Role::gradient;
      entry.name = text;
      entries.push_back(entry);
    }
    std::vector<std::string> out;
    for (std::uint32_t rank = 0; rank < kWorkers; ++rank)
      keep(writer_.dictionary(header_of(rank), entries).finish(), out);
    return out;
  }

  std::vector<std::string> steps(std::int64_t from, std::int64_t count) {
    std::vector<std::string> out;
    for (std::int64_t step = from; step < from + count; ++step) {
      for (std::uint32_t rank = 0; rank < kWorkers; ++rank) {
        core::FrameHeader header = header_of(rank);
        header.step = step;
        header.time = kBegin + step * 330'000'000 + rank;
        for (core::SummaryRow& row : rows_) draw(row);
        keep(writer_.summary(header, rows_).finish(), out);
      }
    }
    return out;
  }

 private:
  core::FrameHeader header_of(std::uint32_t rank) {
    core::FrameHeader out;
    out.run = run_;
    out.rank = rank;
    out.mode = core::Mode::train;
    out.worker = core::name_hash("worker_" + std::to_string(rank));
    out.incarnation = 1;
    out.sequence = ++sequence_[rank];
    return out;
  }
  void draw(core::SummaryRow& row) {
    const auto unit = [this] { return std::uniform_real_distribution<double>(0.5, 1)(chance_); };
    const double scale = 0.01 * unit();
    row.sum = row.n() * scale * (unit() - 0.75);
    row.sumsq = row.n() * scale * scale * unit();
    row.m2 = row.sumsq - row.sum * row.mean();
    row.abs_sum = row.n() * scale * unit();
    row.min = static_cast<float>(-4 * scale * unit());
    row.max = static_cast<float>(4 * scale * unit());
    row.zero = chance_() % 8;
    row.negative = 2000 + chance_() % 64;
  }
  static void keep(const core::Result<std::span<const std::byte>>& frame,
                   std::vector<std::string>& into) {
    must(frame.has_value(), "encode");
    into.emplace_back(reinterpret_cast<const char*>(frame->data()), frame->size());
  }

  core::RunUid run_;
  ingest::FrameWriter writer_;
  std::vector<core::SummaryRow> rows_;
  std::array<std::uint64_t, kWorkers> sequence_{};
  std::mt19937_64 chance_{1};
};

template <typename Take>
void decode(const std::vector<std::string>& frames, ingest::JsonScalarDecoder& json,
            const Take& take) {
  for (const std::string& frame : frames) {
    core::RecordView record;
    record.topic = "telemetry";
    record.value = std::as_bytes(std::span(frame));
    must(!ingest::decode_telemetry(record, json, take), "decode");
  }
}

// Checks the records, and touches each number.
class DecodeOnly {
 public:
  void take(const std::vector<std::string>& frames) {
    const double before = cpu_seconds();
    decode(frames, json_, [this](const core::FrameView& frame, const core::FrameBody&) {
      for (std::size_t at = 0; at < frame.rows(); ++at) {
        const core::SummaryRow row = frame.summary(at);
        sum_ += row.sum + row.sumsq + row.m2 + row.abs_sum + row.min + row.max +
                static_cast<double>(row.count + row.nan + row.posinf + row.neginf + row.zero +
                                    row.negative);
      }
    });
    seconds_ += cpu_seconds() - before;
    must(std::isfinite(sum_), "sum");
  }
  [[nodiscard]] double seconds() const { return seconds_; }

 private:
  ingest::JsonScalarDecoder json_;
  double sum_ = 0;
  double seconds_ = 0;
};

// A row of a table for each value.
class PlainRows {
 public:
  explicit PlainRows(const std::string& path) {
    must(sqlite3_open(path.c_str(), &database_) == SQLITE_OK, "open");
    run("PRAGMA page_size=16384; PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA"
        " cache_size=-32768; CREATE TABLE t(worker INTEGER, name INTEGER, column INTEGER, x "
        "INTEGER,"
        " value REAL, PRIMARY KEY(worker, name, column, x)) WITHOUT ROWID");
    must(sqlite3_prepare_v2(database_, "INSERT INTO t VALUES(?, ?, ?, ?, ?)", -1, &insert_,
                            nullptr) == SQLITE_OK,
         "prepare");
  }
  ~PlainRows() {
    sqlite3_finalize(insert_);
    sqlite3_close(database_);
  }
  PlainRows(const PlainRows&) = delete;
  PlainRows& operator=(const PlainRows&) = delete;

  void take(const std::vector<std::string>& frames) {
    const double before = cpu_seconds();
    run("BEGIN IMMEDIATE");
    decode(frames, json_, [this](const core::FrameView& frame, const core::FrameBody&) {
      for (std::size_t at = 0; at < frame.rows(); ++at) put(frame.header(), frame.summary(at));
    });
    run("COMMIT");
    seconds_ += cpu_seconds() - before;
  }
  [[nodiscard]] double seconds() const { return seconds_; }

 private:
  void put(const core::FrameHeader& header, const core::SummaryRow& row) {
    const auto number = [](std::uint64_t count) { return static_cast<double>(count); };
    const std::array<double, 12> values{row.n(),
                                        row.sum,
                                        row.sumsq,
                                        row.m2,
                                        row.abs_sum,
                                        row.min,
                                        row.max,
                                        number(row.nan),
                                        number(row.zero),
                                        number(row.posinf),
                                        number(row.neginf),
                                        number(row.negative)};
    for (std::size_t column = 0; column < values.size(); ++column) {
      sqlite3_bind_int64(insert_, 1, header.rank);
      sqlite3_bind_int64(insert_, 2, static_cast<std::int64_t>(row.name));
      sqlite3_bind_int64(insert_, 3, static_cast<std::int64_t>(column));
      sqlite3_bind_int64(insert_, 4, header.step);
      sqlite3_bind_double(insert_, 5, values[column]);
      must(sqlite3_step(insert_) == SQLITE_DONE, "insert");
      sqlite3_reset(insert_);
    }
  }
  void run(const char* sql) {
    must(sqlite3_exec(database_, sql, nullptr, nullptr, nullptr) == SQLITE_OK, sql);
  }

  sqlite3* database_ = nullptr;
  sqlite3_stmt* insert_ = nullptr;
  ingest::JsonScalarDecoder json_;
  double seconds_ = 0;
};

// What the reading thread of the curves does with records (app/api/curves_feed.cc).
class Curves {
 public:
  explicit Curves(const std::string& path) : path_(path) {
    insights::SetAside moved;
    auto made = insights::SeriesWriter::open(path, "bench", moved);
    must(made.has_value(), "open");
    store_ = std::move(*made);
  }

  /// A commit waits for so many rows, or as long as memory allows.
  void take(const std::vector<std::string>& frames,
            std::size_t most = std::numeric_limits<std::size_t>::max()) {
    const double before = cpu_seconds();
    decode(frames, json_, [&](const core::FrameView& frame, const core::FrameBody& body) {
      samples_.take(frame, body, core::Duration{}, *store_);
      spans_.take(frame, body, *store_);
      insights::fold_frame(frame, body, *store_);
      ++next_;
      if (store_->waiting() >= most || store_->waiting_bytes() >= kBytesOfACommit) commit();
    });
    seconds_ += cpu_seconds() - before;
  }
  void settle() {
    const double before = cpu_seconds();
    commit();
    seconds_ += cpu_seconds() - before;
  }
  [[nodiscard]] double seconds() const { return seconds_; }
  [[nodiscard]] double bytes() const {
    return static_cast<double>((*insights::SeriesReader::open(path_))->size().bytes);
  }

 private:
  void commit() {
    samples_.settle(core::Duration{}, *store_);
    spans_.settle(*store_);
    must(store_->commit({{{"telemetry", 0}, next_}}).has_value(), "commit");
  }

  std::string path_;
  std::unique_ptr<insights::SeriesWriter> store_;
  ingest::JsonScalarDecoder json_;
  insights::SystemFold samples_;
  insights::SpanFold spans_;
  std::int64_t next_ = 0;
  double seconds_ = 0;
};

}  // namespace

int main() {
  const auto folder =
      std::filesystem::temp_directory_path() / ("ingest-bench-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  {
    Producer producer("catching up");
    DecodeOnly alone;
    PlainRows plain(folder / "plain.db");
    Curves curves(folder / "curves.db");
    curves.take(producer.names());
    for (std::int64_t step = 0; step < kSteps; step += kStepsOfASlice) {
      const auto frames = producer.steps(step, kStepsOfASlice);
      alone.take(frames);
      if (step < kSlicesOfPlain * kStepsOfASlice) plain.take(frames);
      curves.take(frames);
    }
    curves.settle();
    const double slices = static_cast<double>(kSteps) / kStepsOfASlice;
    const auto rate = [](double of, double seconds) {
      return of * kValuesOfASlice / seconds * 1e-6;
    };
    bench::figure("ingest: decode only, values of a CPU-second", rate(slices, alone.seconds()),
                  "million");
    bench::figure("ingest: plain rows, values of a CPU-second",
                  rate(kSlicesOfPlain, plain.seconds()), "million");
    bench::judged("ingest: the store, values of a CPU-second", rate(slices, curves.seconds()),
                  "million", 3, true);
    bench::beside("ingest: the store; floor: decode only",
                  curves.seconds() / slices / kValuesOfASlice * 1e9,
                  alone.seconds() / slices / kValuesOfASlice * 1e9, "ns", 0);
    bench::beside("ingest: the store; floor: plain rows",
                  curves.seconds() / slices / kValuesOfASlice * 1e9,
                  plain.seconds() / kSlicesOfPlain / kValuesOfASlice * 1e9, "ns", 1);
    bench::figure("ingest: bytes of a value", curves.bytes() / slices / kValuesOfASlice, "B");

    Producer slow("live");
    Curves live(folder / "live.db");
    live.take(slow.names());
    for (std::int64_t at = 0; at < kSlicesOfLive; ++at)
      live.take(slow.steps(at * kStepsOfASlice, kStepsOfASlice),
                kStepsOfALive * kWorkers * kTensors);
    live.settle();
    bench::figure("ingest: a commit each 4 steps, values of a CPU-second",
                  rate(kSlicesOfLive, live.seconds()), "million");
  }
  std::filesystem::remove_all(folder);
  return 0;
}
