#include "insights/config.h"

namespace tocsin::insights {

void read(config::Reader& in, Config& out) {
  in.optional("enabled", out.enabled,
              "keep events of runs for the page; false: it shows only what is open or ended within "
              "the last hour");
  in.optional("path", out.path,
              "file of the store; by default insights.db in the journal's directory, with Kafka in "
              "$STATE_DIRECTORY or ./tocsin-insights");
  in.optional("keep", out.keep, config::at_least(core::Duration(std::chrono::hours{1})),
              "runs unheard of for so long are forgotten");
  in.optional("max_bytes", out.max_bytes,
              "above it the runs that were heard of least lately are forgotten");
  in.optional("max_curve_bytes", out.max_curve_bytes,
              "the same of curves.db, beside the store: curves and tensors of runs");
  in.optional("replays", out.replays, config::between(std::uint64_t{1}, std::uint64_t{64}),
              "replays that people begin on the page and by the API run at once; more are refused");
}

}  // namespace tocsin::insights
