#include "app/loop/state_reading.h"

#include <exception>
#include <optional>
#include <utility>

#include "app/process/memory_ahead.h"

namespace tocsin::app {

core::Status StateReading::open(core::RecordPublisher& publisher) {
  partitions_ = wiring_.state_partitions;
  if (wiring_.state != StateScope::whole || partitions_ != 0) return core::ok();
  const auto there = publisher.partitions(wiring_.state_topic);
  if (!there) return there.error();
  partitions_ = *there;
  return core::ok();
}

core::Status StateReading::read(std::int32_t number, core::RecordSource& source, Instant now,
                                core::FunctionRef<void(const core::Error&)> damaged) {
  if (wiring_.state == StateScope::none) return core::ok();
  if (wiring_.state == StateScope::input_partition) {
    return read_partition(number, number, source, now, damaged);
  }
  if (whole_read_) return core::ok();
  for (std::int32_t partition = 0; partition < partitions_; ++partition) {
    const auto status = read_partition(number, partition, source, now, damaged);
    if (!status) return status;
  }
  whole_read_ = true;
  return core::ok();
}

core::Status StateReading::read_partition(std::int32_t number, std::int32_t state_partition,
                                          core::RecordSource& source, Instant now,
                                          core::FunctionRef<void(const core::Error&)> damaged) {
  std::optional<core::Error> problem;
  const auto note = [&](core::Error error) {
    if (!problem) problem = std::move(error);
  };
  MemoryAhead memory;
  const auto read = source.read_all(wiring_.state_topic, state_partition, stage_.state_since(now),
                                    [&](const core::RecordView& record) {
                                      memory.reading(record.value.size());
                                      try {
                                        const auto status = stage_.restore(number, record);
                                        if (!status) note(status.error());
                                      } catch (const std::exception& e) {
                                        note({core::Code::data_loss, e.what()});
                                      }
                                    });
  if (!read && read.error().code != core::Code::data_loss) return read;
  if (!read) note(read.error());
  if (problem) damaged(*problem);
  return core::ok();
}

}  // namespace tocsin::app
