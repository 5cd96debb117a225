// The journal beside a bare SQLite loop in the same run: bytes per second, commit latency, what a
// hook's call costs while another process holds the write lock, what an idle reader costs.
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "bench/bench_report.h"
#include "core/log.h"
#include "core/telemetry.h"
#include "ingest/ingest.h"

namespace {

using namespace tocsin;  // a program of one file
using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

constexpr int kRecords = 10'000;
constexpr std::size_t kRecordBytes = 20'000;
constexpr int kCommits = 1000;

core::NullLog quiet;
core::NullTelemetry uncounted;

double since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

void must(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "journal_bench: %s failed\n", what);
  std::exit(2);
}

double cpu_seconds() {
  struct rusage used {};
  ::getrusage(RUSAGE_SELF, &used);
  const auto seconds_of = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds_of(used.ru_utime) + seconds_of(used.ru_stime);
}

core::OutRecord frame(const std::string& topic, std::size_t bytes) {
  return {topic, "4e3046d4-8c1f-5278-82e3-ea3595bc5999", std::string(bytes, 'x')};
}

/// The same writes by hand: what SQLite itself takes.
class Bare {
 public:
  explicit Bare(const std::string& path, bool synced) {
    must(sqlite3_open(path.c_str(), &database_) == SQLITE_OK, "open");
    run("PRAGMA page_size=16384; PRAGMA auto_vacuum=2; PRAGMA journal_mode=WAL;"
        "PRAGMA wal_autocheckpoint=0; CREATE TABLE IF NOT EXISTS t(id INTEGER PRIMARY KEY, "
        "ts INTEGER, key BLOB, value BLOB, headers BLOB);");
    run(synced ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL");
    must(sqlite3_prepare_v2(database_, "INSERT INTO t VALUES(?, 1, ?, ?, NULL)", -1, &insert_,
                            nullptr) == SQLITE_OK,
         "prepare");
  }
  ~Bare() {
    sqlite3_finalize(insert_);
    sqlite3_close(database_);
  }
  Bare(const Bare&) = delete;
  Bare& operator=(const Bare&) = delete;
  void run(const char* sql) {
    must(sqlite3_exec(database_, sql, nullptr, nullptr, nullptr) == SQLITE_OK, sql);
  }
  void write(int count, std::size_t bytes) {
    const std::string value(bytes, 'x');
    run("BEGIN IMMEDIATE");
    for (int i = 0; i < count; ++i) {
      sqlite3_bind_int64(insert_, 1, id_++);
      sqlite3_bind_blob(insert_, 2, "key", 3, SQLITE_STATIC);
      sqlite3_bind_blob(insert_, 3, value.data(), static_cast<int>(bytes), SQLITE_STATIC);
      must(sqlite3_step(insert_) == SQLITE_DONE, "insert");
      sqlite3_reset(insert_);
    }
    run("COMMIT");
  }
  double read() {
    sqlite3_stmt* rows = nullptr;
    sqlite3_prepare_v2(database_, "SELECT id, ts, key, value FROM t ORDER BY id", -1, &rows,
                       nullptr);
    double bytes = 0;
    while (sqlite3_step(rows) == SQLITE_ROW) {
      must(sqlite3_column_blob(rows, 3) != nullptr, "read");
      bytes += sqlite3_column_bytes(rows, 3);
    }
    sqlite3_finalize(rows);
    return bytes;
  }

 private:
  sqlite3* database_ = nullptr;
  sqlite3_stmt* insert_ = nullptr;
  sqlite3_int64 id_ = 0;
};

std::unique_ptr<ingest::Transport> open(const std::string& folder) {
  ingest::TransportConfig cfg;
  cfg.journal = folder;
  auto opened = ingest::Transport::open(cfg, {}, quiet, uncounted);
  must(opened.has_value(), "opening the journal");
  return std::move(*opened);
}

void throughput(const std::string& folder) {
  const double bytes = static_cast<double>(kRecords) * kRecordBytes;
  Bare bare(folder + "/bare.db", false);
  auto begin = Clock::now();
  for (int i = 0; i < kRecords; i += 50) {
    bare.write(50, kRecordBytes);
    if (i % 2500 == 0) bare.run("PRAGMA wal_checkpoint(PASSIVE)");
  }
  const double floor_write = bytes / since(begin);
  begin = Clock::now();
  must(bare.read() == bytes, "reading");
  const double floor_read = bytes / since(begin);

  auto transport = open(folder + "/journal");
  auto publisher = transport->publisher({});
  must(publisher.has_value(), "publisher");
  const auto record = frame("telemetry", kRecordBytes);
  begin = Clock::now();
  for (int i = 0; i < kRecords; ++i) {
    while (!(*publisher)->publish(record)) std::this_thread::sleep_for(milliseconds{1});
    if (i % 2500 == 0) {
      must(transport->apply_retention(core::wall_time(1)).has_value(), "keeping");
    }
  }
  must((*publisher)->flush(seconds{60}).has_value(), "flush");
  const double written = bytes / since(begin);
  ingest::SourceOptions reading;
  reading.topics = {"telemetry"};
  auto source = transport->source(reading);
  must(source.has_value(), "source");
  double seen = 0;
  begin = Clock::now();
  while (seen < bytes) {
    must((*source)
             ->poll(seconds{1}, 2048,
                    [&](const core::RecordView& view) {
                      seen += static_cast<double>(view.value.size());
                    })
             .has_value(),
         "poll");
  }
  const double read = bytes / since(begin);
  bench::figure("bare SQLite, append", floor_write / 1e6, "MB/s");
  bench::judged("journal, append by publish()", written / 1e6, "MB/s", 0.5 * floor_write / 1e6,
                true);
  bench::figure("bare SQLite, read", floor_read / 1e6, "MB/s");
  bench::judged("journal, read by poll()", read / 1e6, "MB/s", 0.35 * floor_read / 1e6, true);
}

void commits(const std::string& folder, bool synced) {
  const std::string how = synced ? "with fsync" : "without fsync";
  std::vector<double> floor;
  {
    Bare bare(folder + (synced ? "/bare-synced.db" : "/bare-commits.db"), synced);
    for (int i = 0; i < kCommits; ++i) {
      const auto begin = Clock::now();
      bare.write(3, 1000);
      floor.push_back(since(begin) * 1e6);
    }
  }
  auto transport = open(folder + (synced ? "/synced" : "/commits"));
  ingest::SourceOptions reading;
  reading.group = "bench";
  reading.topics = {"telemetry"};
  auto source = transport->source(reading);
  must(source.has_value(), "source");
  ingest::PublisherOptions options;
  options.durable = synced;
  options.source = source->get();
  options.writer = "engine";
  auto publisher = transport->publisher(options);
  must(publisher.has_value(), "publisher");
  const std::vector<core::OutRecord> out = {frame("issues", 1000), frame("issues", 1000),
                                            frame("rules-state", 1000)};
  std::vector<double> took;
  for (int i = 0; i < kCommits; ++i) {
    const std::vector<core::Position> at = {{{"telemetry", 0}, i}};
    const auto begin = Clock::now();
    must((*publisher)->commit(out, at).has_value(), "commit");
    took.push_back(since(begin) * 1e6);
  }
  for (const double q : {0.5, 0.99}) {
    const std::string name = q < 0.9 ? " p50" : " p99";
    const double least = bench::quantile(floor, q);
    bench::figure("bare SQLite transaction " + how + name, least, "us");
    // Two tables, an index, the next ids and the positions, where the bare loop fills one page.
    const double took_q = bench::quantile(took, q);
    if (q < 0.9) {
      bench::judged("journal commit " + how + name, took_q, "us", 6 * least, false);
    } else {
      bench::figure("journal commit " + how + name, took_q, "us");
    }
  }
}

void busy_hook(const std::string& folder) {
  const std::string journal = folder + "/busy";
  { open(journal); }
  const pid_t holder = ::fork();  // before this process has a connection of its own
  if (holder == 0) {
    Bare other(journal + "/telemetry.db", false);
    other.run("BEGIN IMMEDIATE");
    for (;;) ::pause();
  }
  std::this_thread::sleep_for(milliseconds{300});
  auto transport = open(journal);
  auto hook = transport->publisher({});
  must(hook.has_value(), "publisher");
  const auto record = frame("telemetry", 5000);
  std::vector<double> took;
  for (int i = 0; i < 5000; ++i) {
    const auto begin = Clock::now();
    must((*hook)->publish(record).has_value(), "publish");
    took.push_back(since(begin) * 1e6);
    std::this_thread::sleep_for(std::chrono::microseconds{100});
  }
  ::kill(holder, SIGKILL);
  ::waitpid(holder, nullptr, 0);
  must((*hook)->flush(seconds{20}).has_value(), "flush");
  bench::judged("publish() while another process holds the lock, p99", bench::quantile(took, 0.99),
                "us", 1000, false);
}

void idle_reader(const std::string& folder) {
  auto transport = open(folder + "/idle");
  ingest::SourceOptions reading;
  reading.topics = {"commands"};
  auto source = transport->source(reading);
  must(source.has_value(), "source");
  const double before = cpu_seconds();
  const auto begin = Clock::now();
  while (since(begin) < 3) {
    must((*source)->poll(seconds{1}, 100, [](const core::RecordView&) {}).has_value(), "poll");
  }
  bench::judged("an idle reader", (cpu_seconds() - before) / since(begin) * 100, "% of a core", 0.5,
                false);
}

}  // namespace

int main() {
  const std::string folder =
      (std::filesystem::temp_directory_path() / ("tocsin-bench-" + std::to_string(::getpid())))
          .string();
  std::filesystem::create_directories(folder);
  busy_hook(folder);  // forks, so it comes first
  idle_reader(folder);
  throughput(folder);
  commits(folder, false);
  commits(folder, true);
  std::filesystem::remove_all(folder);
  return 0;
}
