#include "app/api/store_figures.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

namespace tocsin::app {
namespace {

double in_seconds(core::Duration some) { return std::chrono::duration<double>(some).count(); }

}  // namespace

StoreFigures::StoreFigures(core::Telemetry& telemetry, std::string_view store, std::string path)
    : telemetry_(telemetry),
      store_(store),
      path_(std::move(path)),
      gaps_(telemetry.counter("tocsin_insights_gaps_total",
                              "times that records were gone from a topic before they were read",
                              {{"store", store}, {"reason", "position_gone"}})),
      rows_(telemetry.counter("tocsin_insights_values_total",
                              "rows of series that were made durable")),
      refused_(telemetry.counter("tocsin_insights_refused_values_total",
                                 "values left out because a run has too many series")),
      commit_(telemetry.histogram("tocsin_insights_commit_seconds",
                                  "time of one transaction of a store", {{"store", store}})) {}

void StoreFigures::read(std::string_view topic, std::int64_t timestamp) {
  const auto found = oldest_.find(topic);
  if (found == oldest_.end()) {
    oldest_.emplace(topic, timestamp);
  } else {
    found->second = std::min(found->second, timestamp);
  }
}

void StoreFigures::turn(core::WallTime now, bool at_end) {
  for (const auto& [topic, timestamp] : oldest_) {
    core::Gauge*& lag = lags_[topic];
    if (lag == nullptr)
      lag = &telemetry_.gauge("tocsin_insights_lag_seconds",
                              "how old what was read last is, while more of the topic waits",
                              {{"topic", topic}});
    lag->set(std::max(0.0, in_seconds(now - core::wall_time(timestamp))));
  }
  oldest_.clear();
  if (!at_end) return;
  stand(true);
  for (const auto& [topic, lag] : lags_) lag->set(0);
}

void StoreFigures::gap() { gaps_.add(); }

void StoreFigures::committed(core::Duration took, std::size_t rows) {
  commit_.observe(in_seconds(took));
  rows_.add(static_cast<double>(rows));
  stand(true);  // that it could be opened does not say that the disk has room
}

void StoreFigures::refused(std::uint64_t values) { refused_.add(static_cast<double>(values)); }

void StoreFigures::stand(bool writes) {
  telemetry_
      .gauge("tocsin_insights_up", "1 while the store is written; 0: it stopped, the log says why",
             {{"store", store_}})
      .set(writes ? 1 : 0);
  size_up();
}

void StoreFigures::size_up() {
  for (const auto& [part, ending] : {std::pair{"file", ""}, std::pair{"wal", "-wal"}}) {
    std::error_code missing;
    const auto bytes = std::filesystem::file_size(path_ + ending, missing);
    telemetry_
        .gauge("tocsin_insights_store_bytes", "size of a store's file and of its write-ahead log",
               {{"store", store_}, {"part", part}})
        .set(missing ? 0 : static_cast<double>(bytes));
  }
}

}  // namespace tocsin::app
