#include "ingest/kafka_transport.h"

namespace tocsin::ingest {

core::Result<std::unique_ptr<Transport>> open_kafka(const TransportConfig&, const TopicsConfig&,
                                                    core::Log&, core::Telemetry&) {
  return core::Error{core::Code::failed_precondition, "transport.kafka: lands in the next commit"};
}

}  // namespace tocsin::ingest
