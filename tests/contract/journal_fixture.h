// A journal in a folder of its own, and a look into its files by SQL.
#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ingest/ingest.h"
#include "ingest/journal/directory.h"
#include "ingest/journal/transport.h"
#include "tests/contract/transport_backends.h"
#include "tests/support/kafka_fixture.h"

namespace tocsin::tests {

class Journal : public testing::Test {
 protected:
  Journal()
      : directory_(
            (std::filesystem::temp_directory_path() / unique_name("tocsin-journal")).string()) {
    config_.journal = directory_;
    transport_ = open();
  }
  ~Journal() override {
    close();
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }

  core::Result<std::unique_ptr<ingest::Transport>> try_open(
      const std::string& machine = ingest::machine_hash()) {
    return ingest::open_journal(config_, topics_, log_, telemetry_, machine);
  }
  std::unique_ptr<ingest::Transport> open() {
    auto opened = try_open();
    EXPECT_TRUE(opened) << opened.error().message;
    return opened ? std::move(*opened) : nullptr;
  }
  void close() {
    writer_.reset();
    transport_.reset();
  }
  std::unique_ptr<core::RecordPublisher> publisher(ingest::PublisherOptions options = {}) {
    auto opened = transport_->publisher(options);
    EXPECT_TRUE(opened) << opened.error().message;
    return opened ? std::move(*opened) : nullptr;
  }
  /// Group-less without a group; from the beginning.
  std::unique_ptr<core::RecordSource> reader(std::vector<std::string> topics,
                                             const std::string& group = "") {
    ingest::SourceOptions options;
    options.topics = std::move(topics);
    options.group = group;
    auto opened = transport_->source(options);
    EXPECT_TRUE(opened) << opened.error().message;
    return opened ? std::move(*opened) : nullptr;
  }
  static std::vector<std::string> texts(core::RecordSource& source) {
    const auto read = read_to_end(source);
    EXPECT_TRUE(read) << read.error().message;
    std::vector<std::string> all;
    if (read) {
      for (const auto& kept : *read) all.push_back(kept.value);
    }
    return all;
  }
  void put(const std::string& topic, const std::string& key, const std::string& value) {
    if (writer_ == nullptr) writer_ = publisher();
    const auto status = writer_->commit(std::vector{record(topic, key, value)}, {});
    ASSERT_TRUE(status) << status.error().message;
  }
  /// The newest value per key, as restoring reads it.
  std::map<std::string, std::string> state(const std::string& topic) {
    std::map<std::string, std::string> newest;
    const auto read =
        reader({})->read_all(topic, 0, std::nullopt, [&](const core::RecordView& view) {
          newest[std::string(view.key.value_or(""))] = view.text();
        });
    EXPECT_TRUE(read) << read.error().message;
    return newest;
  }
  [[nodiscard]] std::string file(const std::string& name) const { return directory_ + "/" + name; }
  /// First column of the first row; runs any statement.
  std::int64_t sql(const std::string& name, const std::string& statement) const {
    sqlite3* database = nullptr;
    std::int64_t answer = -1;
    EXPECT_EQ(sqlite3_open(file(name).c_str(), &database), SQLITE_OK);
    sqlite3_busy_timeout(database, 5000);
    const auto keep = [](void* to, int, char** values, char**) {
      if (values[0] != nullptr) *static_cast<std::int64_t*>(to) = std::stoll(values[0]);
      return 0;
    };
    EXPECT_EQ(sqlite3_exec(database, statement.c_str(), keep, &answer, nullptr), SQLITE_OK)
        << sqlite3_errmsg(database);
    sqlite3_close(database);
    return answer;
  }
  static core::WallTime wall_now() {
    return std::chrono::time_point_cast<core::Duration>(std::chrono::system_clock::now());
  }
  static core::Duration steady_now() { return std::chrono::steady_clock::now().time_since_epoch(); }

  std::string directory_;
  ingest::TransportConfig config_;
  ingest::TopicsConfig topics_;
  core::NullLog log_;
  core::NullTelemetry telemetry_;
  std::unique_ptr<ingest::Transport> transport_;
  std::unique_ptr<core::RecordPublisher> writer_;  // what put() writes with
};

}  // namespace tocsin::tests
