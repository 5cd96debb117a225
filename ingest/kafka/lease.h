// The lease on Kafka: whoever is assigned the one partition of a topic in a group of its own.
#pragma once

#include <memory>
#include <string>

#include "core/lease.h"
#include "ingest/kafka/source.h"

namespace tocsin::ingest {

/// Membership alone proves nothing once the broker cannot be reached, and a process that was frozen
/// learns late that it was thrown out. So a renewal is an answer of the group's coordinator, and
/// whoever went without one for two thirds of the session joins again as somebody new.
class KafkaLease final : public core::Lease, private core::AssignmentListener {
 public:
  /// `topic`: short name of a topic with one partition. `context` outlives the lease.
  KafkaLease(const KafkaContext& context, std::string topic);
  ~KafkaLease() override;

  core::Status step(core::Duration steady, std::chrono::milliseconds timeout) override;
  [[nodiscard]] std::optional<core::Duration> valid_until() const override { return valid_until_; }
  void release() override;

 private:
  void assigned(std::span<const core::Position> committed) override;
  void revoked(std::span<const core::StreamPartition> partitions) override;
  void lost(std::span<const core::StreamPartition> partitions) override;
  core::Status join();

  const KafkaContext& context_;
  const std::string topic_;
  std::unique_ptr<KafkaSource> source_;
  std::vector<core::Position> held_;  // empty: not assigned
  std::optional<core::Duration> valid_until_;
};

}  // namespace tocsin::ingest
