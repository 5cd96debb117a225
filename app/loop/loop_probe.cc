#include "app/loop/loop_probe.h"

namespace tocsin::app {

LoopProbe::LoopProbe(core::Telemetry& telemetry, const StageWiring& wiring)
    : sink(telemetry),
      part("tocsin_" + wiring.part + "_"),
      stage(wiring.name),
      commits(sink.counter(part + "transactions_total", "commits of output, state and positions",
                           {{"stage", stage}})),
      failures(sink.counter(part + "transaction_aborts_total",
                            "commits that had to be repeated or given up", {{"stage", stage}})),
      restarts(sink.counter(part + "restarts_total",
                            "times a stage dropped its state and read it back",
                            {{"stage", stage}})),
      faults(sink.counter(part + "state_faults_total",
                          "state or input that was damaged, unknown or gone", {{"stage", stage}})),
      overruns(sink.counter(part + "handler_overruns_total",
                            "records that took longer than five seconds", {{"stage", stage}})),
      commit_seconds(sink.histogram(part + "commit_duration_seconds", "time of one commit",
                                    {{"stage", stage}})),
      restore_seconds(
          sink.histogram(part + "state_restore_seconds", "assignment to live", {{"stage", stage}})),
      partitions(
          sink.gauge(part + "partitions", "input partitions that are ours", {{"stage", stage}})),
      behind(sink.gauge(part + "partitions_behind",
                        "input partitions whose newest record or end was not seen for two seconds",
                        {{"stage", stage}})) {}

void LoopProbe::dead_letter(const std::string& reason) {
  sink.counter(part + "events_rejected_total",
               "records that could not be read: they went to the dead-letter topic",
               {{"stage", stage}, {"reason", reason}})
      .add();
}

}  // namespace tocsin::app
