#include "actions/metrics/metric_transport.h"

namespace tocsin::actions {

std::span<const MetricTransportDescriptor> metric_transports() {
  static const MetricTransportDescriptor kTable[] = {
      remote_write_transport(), pushgateway_transport(), otlp_transport(),
      statsd_transport(),       cloudwatch_transport(),
  };
  return kTable;
}

}  // namespace tocsin::actions
