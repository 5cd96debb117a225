// A real Kafka for tests, started by tools/kafka. A test that cannot have it fails; none is
// skipped.
#pragma once

#include <memory>
#include <string>

#include "core/result.h"

namespace tocsin::tests {

/// A cluster of this program's own, which tests may freeze and kill. Ends with the object, and
/// with the program however that ends.
class KafkaCluster {
 public:
  /// `name` distinguishes the clusters of one program.
  static core::Result<std::unique_ptr<KafkaCluster>> start(const std::string& name, int nodes = 1);
  ~KafkaCluster();
  KafkaCluster(const KafkaCluster&) = delete;
  KafkaCluster& operator=(const KafkaCluster&) = delete;

  [[nodiscard]] const std::string& servers() const { return servers_; }  // "host:port,…"
  core::Status pause();    // SIGSTOP: connections stay open, nothing answers
  core::Status resume();   // SIGCONT
  core::Status kill();     // kill -9; the data stays
  core::Status restart();  // on the same port and data

 private:
  KafkaCluster(std::string name, std::string servers)
      : name_(std::move(name)), servers_(std::move(servers)) {}
  core::Status tool(const std::string& command);

  std::string name_;
  std::string servers_;
};

/// KAFKA_BOOTSTRAP_SERVERS if it is set, else one cluster for the whole test program, started by
/// the first call (seconds). Never freeze this one.
core::Result<std::string> kafka_bootstrap_servers();

/// A topic prefix, group or folder name that nobody else uses.
std::string unique_name(const std::string& what);

}  // namespace tocsin::tests
