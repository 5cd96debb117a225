// `tocsin topics`: the topics that are needed beside those that are there.
#pragma once

#include <string>

namespace tocsin::app {

struct TopicsOptions {
  std::string config_file;      // empty: $TOCSIN_CONFIG, then ./tocsin.yaml
  std::string out;              // kafka://host:9092 or a directory, before any file
  std::string format = "text";  // text, json; export: strimzi, shell, terraform too
};
// Each returns an exit code; 1: topics differ; 3: configuration; 4: broker unreachable.
int topics_plan(const TopicsOptions& options);
/// Creates the missing ones.
int topics_apply(const TopicsOptions& options);
/// Reads the plan alone, no broker.
int topics_export(const TopicsOptions& options);

}  // namespace tocsin::app
