// A process of its own on a journal, for tests that kill it or make it hold things.
// usage: journal_worker engine|hook|write|hold|lease|group DIR [NUMBER] [TEXT]
#include <sqlite3.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "core/log.h"
#include "core/telemetry.h"
#include "ingest/ingest.h"

namespace {

using namespace tocsin;  // a program of one file
using std::chrono::milliseconds;

void say(const char* word) {
  std::puts(word);
  std::fflush(stdout);
}

core::OutRecord record(std::string topic, std::string key, std::string value) {
  return {std::move(topic), std::move(key), std::move(value)};
}

/// Reads numbers from telemetry and commits each with its position, until it is killed.
int run_engine(ingest::Transport& transport, std::uint32_t seed) {
  ingest::SourceOptions reading;
  reading.group = "engine";
  reading.topics = {"telemetry"};
  auto source = transport.source(reading);
  if (!source) return 3;
  ingest::PublisherOptions writing;
  writing.source = source->get();
  auto publisher = transport.publisher(writing);
  if (!publisher) return 3;
  std::mt19937 random(seed);
  for (;;) {
    std::vector<core::OutRecord> out;
    const auto polled =
        (*source)->poll(milliseconds{10}, 1 + random() % 9, [&](const core::RecordView& view) {
          out.push_back(record("issues", "run", std::string(view.text())));
          out.push_back(record("rules-state", "unit", std::string(view.text())));
        });
    if (!polled) return 4;
    if (*polled > 0 && !(*publisher)->commit(out, (*source)->positions())) return 5;
    if (*polled > 0) say("committed");
  }
}

/// Commits batches of ten equal records to telemetry, until it is killed.
int run_hook(ingest::Transport& transport) {
  auto publisher = transport.publisher({});
  if (!publisher) return 3;
  for (int batch = 0;; ++batch) {
    const std::vector<core::OutRecord> out(
        10, record("telemetry", "run", std::string(3000, 'x') + std::to_string(batch)));
    if (!(*publisher)->commit(out, {})) return 5;
    say("committed");
  }
}

int write(ingest::Transport& transport, int count, const std::string& text) {
  auto publisher = transport.publisher({});
  if (!publisher) return 3;
  for (int i = 0; i < count; ++i) {
    auto numbered = record("telemetry", text, text + " " + std::to_string(i));
    while (!(*publisher)->publish(numbered)) std::this_thread::sleep_for(milliseconds{1});
  }
  return (*publisher)->flush(std::chrono::seconds{20}) ? 0 : 5;
}

/// Holds the write lock of one file until it is killed.
int hold(const std::string& path) {
  sqlite3* database = nullptr;
  if (sqlite3_open(path.c_str(), &database) != SQLITE_OK) return 3;
  if (sqlite3_exec(database, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr) != SQLITE_OK) return 4;
  say("held");
  for (;;) std::this_thread::sleep_for(std::chrono::hours{1});
}

int lead(ingest::Transport& transport) {
  auto lease = transport.lease("router-lease");
  if (!lease) return 3;
  bool told = false;
  for (;;) {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    if (!(*lease)->step(now, milliseconds{1000})) return 4;
    if ((*lease)->valid_until() && !std::exchange(told, true)) say("leads");
    std::this_thread::sleep_for(milliseconds{50});
  }
}

int read_group(ingest::Transport& transport) {
  ingest::SourceOptions reading;
  reading.group = "engine";
  reading.topics = {"telemetry"};
  auto source = transport.source(reading);
  if (!source) return 3;
  say("reads");
  for (;;) std::this_thread::sleep_for(std::chrono::hours{1});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const std::string what = argv[1];
  if (what == "hold") return hold(argv[2]);
  core::NullLog log;
  core::NullTelemetry telemetry;
  ingest::TransportConfig cfg;
  cfg.journal = argv[2];
  auto transport = ingest::Transport::open(cfg, {}, log, telemetry);
  if (!transport) return 3;
  const int number = argc > 3 ? std::atoi(argv[3]) : 0;
  if (what == "engine") return run_engine(**transport, static_cast<std::uint32_t>(number));
  if (what == "hook") return run_hook(**transport);
  if (what == "write") return write(**transport, number, argc > 4 ? argv[4] : "");
  if (what == "lease") return lead(**transport);
  if (what == "group") return read_group(**transport);
  return 2;
}
