// The store of series beside plain rows of SQLite in the same run: what a value costs to write and
// takes on the disk, and how long a curve of ten million values takes to read.
#include <sqlite3.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "bench/bench_report.h"
#include "insights/insights.h"

namespace {

using namespace tocsin;  // a program of one file
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kValues = 10'000'000;
constexpr std::int64_t kRows = 1'000'000;  // of the baseline
constexpr std::int64_t kOfACommit = 4096;
constexpr int kReads = 50;

double since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

void must(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "series_bench: %s failed\n", what);
  std::exit(2);
}

core::RunUid one_run() {
  core::RunUid out;
  out.bytes.back() = 1;
  return out;
}

// As a training logs it: a float, falling and noisy.
double loss_at(std::int64_t x, std::mt19937_64& chance) {
  const double noise = std::uniform_real_distribution<double>(-0.05, 0.05)(chance);
  return static_cast<float>(3.0 / std::sqrt(1.0 + static_cast<double>(x) / 1000.0) + noise);
}

class PlainRows {
 public:
  explicit PlainRows(const std::string& path) {
    must(sqlite3_open(path.c_str(), &database_) == SQLITE_OK, "open");
    run("PRAGMA page_size=16384; PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; CREATE TABLE"
        " t(family INTEGER, x INTEGER, time INTEGER, value REAL, PRIMARY KEY(family, x)) WITHOUT"
        " ROWID");
    prepare("INSERT INTO t VALUES(1, ?, ?, ?)", insert_);
    prepare(
        "SELECT count(*), min(value), max(value), sum(value), min(time) FROM t WHERE family = 1"
        " GROUP BY x / ?",
        group_);
  }
  ~PlainRows() {
    sqlite3_finalize(insert_);
    sqlite3_finalize(group_);
    sqlite3_close(database_);
  }
  PlainRows(const PlainRows&) = delete;
  PlainRows& operator=(const PlainRows&) = delete;

  double write() {
    std::mt19937_64 chance(1);
    const auto begin = Clock::now();
    for (std::int64_t x = 0; x < kRows; x += kOfACommit) {
      run("BEGIN IMMEDIATE");
      for (std::int64_t at = x; at < std::min(kRows, x + kOfACommit); ++at) {
        sqlite3_bind_int64(insert_, 1, at);
        sqlite3_bind_int64(insert_, 2, 1'700'000'000'000'000 + at * 30'000);
        sqlite3_bind_double(insert_, 3, loss_at(at, chance));
        must(sqlite3_step(insert_) == SQLITE_DONE, "insert");
        sqlite3_reset(insert_);
      }
      run("COMMIT");
    }
    return since(begin) / static_cast<double>(kRows);
  }
  double read() {
    std::vector<double> took;
    for (int turn = 0; turn < 5; ++turn) {
      const auto begin = Clock::now();
      sqlite3_bind_int64(group_, 1, kRows / 1000);
      int groups = 0;
      while (sqlite3_step(group_) == SQLITE_ROW) ++groups;
      sqlite3_reset(group_);
      must(groups == 1000, "group");
      took.push_back(since(begin));
    }
    return bench::quantile(took, 0.5);
  }

 private:
  void run(const char* sql) {
    must(sqlite3_exec(database_, sql, nullptr, nullptr, nullptr) == SQLITE_OK, sql);
  }
  void prepare(const char* sql, sqlite3_stmt*& into) {
    must(sqlite3_prepare_v2(database_, sql, -1, &into, nullptr) == SQLITE_OK, sql);
  }
  sqlite3* database_ = nullptr;
  sqlite3_stmt* insert_ = nullptr;
  sqlite3_stmt* group_ = nullptr;
};

double write_series(insights::SeriesWriter& store) {
  std::mt19937_64 chance(1);
  const insights::SegmentOf segment{one_run(), 9, 1, 1, 0};
  const auto begin = Clock::now();
  store.name(one_run(), insights::FamilyKind::scalar, {5, "loss", core::Role::loss, "", -1});
  for (std::int64_t x = 0; x < kValues; x += kOfACommit) {
    for (std::int64_t at = x; at < std::min(kValues, x + kOfACommit); ++at) {
      const std::array<double, 2> row{loss_at(at, chance), 1.7e15 + static_cast<double>(at) * 3e4};
      store.add(segment, insights::FamilyKind::scalar, 5, core::Mode::train, at, row);
    }
    must(store.commit({}).has_value(), "commit");
  }
  return since(begin) / static_cast<double>(kValues);
}

double read_series(const std::string& path, std::int64_t wide) {
  std::vector<double> took;
  std::mt19937_64 chance(2);
  for (int turn = 0; turn < kReads; ++turn) {
    insights::SeriesAsk ask;
    ask.run = core::to_text(one_run());
    ask.points = 1000;
    ask.from = wide == kValues ? 0 : static_cast<std::int64_t>(chance() % (kValues - wide));
    ask.to = *ask.from + wide;
    const auto begin = Clock::now();
    auto reader = insights::SeriesReader::open(path);  // as each request does
    must(reader.has_value(), "open");
    const auto answer = insights::ask_series(**reader, ask);
    took.push_back(since(begin));
    must(answer.has_value() && answer->lines.size() == 1 && answer->lines[0].points.size() > 400,
         "read");
  }
  return bench::quantile(took, 0.99);
}

}  // namespace

int main() {
  const auto folder =
      std::filesystem::temp_directory_path() / ("series-bench-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  PlainRows plain(folder / "plain.db");
  const double plain_write = plain.write();
  const double plain_read = plain.read();
  const std::string path = folder / "curves.db";
  insights::SetAside moved;
  auto store = insights::SeriesWriter::open(path, "bench", moved);
  must(store.has_value(), "open");
  const double write = write_series(**store);
  bool good = bench::beside("series: write a value and its time, beside a row", write * 1e9,
                            plain_write * 1e9, "ns", 1.0);
  const auto bytes = static_cast<double>((*insights::SeriesReader::open(path))->size().bytes);
  bench::figure("series: bytes of a value and its time", bytes / static_cast<double>(kValues), "B");
  bench::judged("series: 10^7 values to 1000 points, p99", read_series(path, kValues) * 1e3, "ms",
                50, false);
  bench::judged("series: 10^5 of 10^7 values to 1000 points, p99", read_series(path, 100'000) * 1e3,
                "ms", 50, false);
  bench::judged("series: 1000 of 10^7 values, p99", read_series(path, 1000) * 1e3, "ms", 50, false);
  good = bench::beside("series: 10^7 values, beside grouping 10^6 rows",
                       read_series(path, kValues) * 1e3, plain_read * 1e3, "ms", 0.1) &&
         good;
  std::filesystem::remove_all(folder);
  return good ? 0 : 1;
}
