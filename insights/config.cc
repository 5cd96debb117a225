#include "insights/config.h"

#include <algorithm>
#include <string_view>

namespace tocsin::insights {

namespace {

// Nothing in it is escaped, or leads anywhere else.
bool is_trace_place(const std::string& place) {
  const bool up = place.find("/../") != std::string::npos || place.ends_with("/..");
  if (place.starts_with('/')) return !up;
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-._~/").find(c) != std::string_view::npos;
  };
  return place.starts_with("s3://") && place.size() > 5 && place[5] != '/' && !up &&
         std::all_of(place.begin() + 5, place.end(), plain);
}

void read_traces(config::Reader& in, TracePlaces& out) {
  config::Check<std::vector<std::string>> places;
  places.ok = [](const std::vector<std::string>& all) {
    return std::all_of(all.begin(), all.end(), is_trace_place);
  };
  places.expected = "directories that begin with / and s3://bucket/prefix, without ..";
  in.optional(
      "from", out.from, places,
      "directories and s3://bucket/prefix whose traces this server sends; others stay where "
      "they are");
  config::Check<std::string> endpoint;
  endpoint.ok = [](const std::string& text) {
    return text.empty() || text.starts_with("https://") || text.starts_with("http://");
  };
  endpoint.expected = "https://host[:port]";
  in.optional(
      "endpoint", out.endpoint, endpoint,
      "of an S3-compatible store; default: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, Amazon's");
  in.optional("region", out.region,
              "of the store; default: AWS_REGION, AWS_DEFAULT_REGION, us-east-1");
}

}  // namespace

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
  in.section("traces", "where traces that did not go to the topic may be read",
             [&](config::Reader& places) { read_traces(places, out.traces); });
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
