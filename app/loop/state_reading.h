// What a stage has written of its state, read back: of one partition, or once as a whole.
#pragma once

#include <cstdint>

#include "app/loop/stage.h"
#include "core/function_ref.h"
#include "core/record_publisher.h"
#include "core/record_source.h"

namespace tocsin::app {

class StateReading {
 public:
  /// Both outlive this.
  StateReading(Stage& stage, const StageWiring& wiring) : stage_(stage), wiring_(wiring) {}

  /// Learns how many partitions the state has.
  core::Status open(core::RecordPublisher& publisher);
  /// Nothing of it has been read.
  void clear() { whole_read_ = false; }
  /// Hands the stage what belongs to partition `number`. `damaged`: it is not whole, and was read as
  /// far as it could be; a status that is not ok: it could not be read now.
  core::Status read(std::int32_t number, core::RecordSource& source, Instant now,
                    core::FunctionRef<void(const core::Error&)> damaged);

 private:
  core::Status read_partition(std::int32_t number, std::int32_t state_partition,
                              core::RecordSource& source, Instant now,
                              core::FunctionRef<void(const core::Error&)> damaged);

  Stage& stage_;
  const StageWiring& wiring_;
  std::int32_t partitions_ = 0;
  bool whole_read_ = false;
};

}  // namespace tocsin::app
