#include "insights/config.h"

namespace tocsin::insights {

void read(config::Reader& in, Config& out) {
  in.optional("enabled", out.enabled,
              "keep events of runs for the page; false: it shows only what is open or ended within "
              "the last hour");
  in.optional("path", out.path,
              "file of the store; by default insights.db in the journal's directory, with Kafka in "
              "$STATE_DIRECTORY or ./tocsin-insights");
  if (!in.describing() && in.has("keep")) {
    std::string moved;
    in.optional("keep", moved, "");
    in.error("keep", "store.keep.runs has this age now: write store: {keep: {runs: " + moved +
                         "}}; the ages of all classes stand there");
  }
  in.optional("max_bytes", out.max_bytes,
              "above it the runs that were heard of least lately are forgotten");
  in.optional("max_curve_bytes", out.max_curve_bytes,
              "the same of curves.db, beside the store: curves and tensors of runs");
  in.optional("replays", out.replays, config::between(std::uint64_t{1}, std::uint64_t{64}),
              "replays that people begin on the page and by the API run at once; more are refused");
}

namespace {

// Of two ages that are both written; a default gives way (ages_of).
void check_order(config::Reader& in, const char* key, core::Duration age, const char* longer_key,
                 core::Duration longer) {
  if (age <= longer || !in.has(key) || !in.has(longer_key)) return;
  in.error(key, std::string(key) + " (" + core::to_text(age) + ") must not be above " + longer_key +
                    " (" + core::to_text(longer) + ")");
}

void read_keep(config::Reader& in, KeepAges& out) {
  const auto hour = config::at_least(core::Duration(std::chrono::hours{1}));
  in.optional("runs", out.runs, hour,
              "runs unheard of for so long are forgotten: curves, issues, deliveries, notes");
  in.optional("scalars", out.scalars, hour,
              "single values of scalars and step times; their buckets live four times as long");
  in.optional("tensors", out.tensors, hour, "single values of tensors, and their histograms");
  in.optional("tensor_rollups", out.tensor_rollups, hour,
              "the narrowest buckets of tensors; each wider level lives four times as long");
  in.optional("system", out.system, hour, "single samples of nodes");
  in.optional("system_rollups", out.system_rollups, hour,
              "the narrowest buckets of samples; each wider level lives four times as long");
  in.optional("spans", out.spans, hour, "spans of the timeline");
  if (in.describing()) return;
  check_order(in, "scalars", out.scalars, "runs", out.runs);
  check_order(in, "tensors", out.tensors, "tensor_rollups", out.tensor_rollups);
  check_order(in, "tensor_rollups", out.tensor_rollups, "runs", out.runs);
  check_order(in, "system", out.system, "system_rollups", out.system_rollups);
  check_order(in, "system_rollups", out.system_rollups, "runs", out.runs);
  check_order(in, "spans", out.spans, "runs", out.runs);
}

}  // namespace

void read_store(config::Reader& in, Config& out) {
  in.optional("backfill", out.backfill, config::at_least(core::Duration(0)),
              "a new store reads telemetry of so long ago; older curves are not read");
  in.section("keep", "how long the store keeps what",
             [&](config::Reader& ages) { read_keep(ages, out.keep); });
}

}  // namespace tocsin::insights
