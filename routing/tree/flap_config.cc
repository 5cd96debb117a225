#include "routing/tree/flap_config.h"

namespace tocsin::routing {

void read_flap(config::Reader& in, std::optional<FlapConfig>& out) {
  FlapConfig flap;
  const bool there = in.section(
      "flap", "damps issues that begin and end again and again; inherited",
      [&](config::Reader& section) {
        section.optional("episodes", flap.episodes,
                         config::between<std::uint32_t>(2, kMaxFlapEpisodes),
                         "an issue flaps when it begins for the n-th time");
        section.optional("within", flap.within, config::positive(), "in this time");
        section.optional("hold", flap.hold, config::positive(),
                         "its resolves are held until nothing happens to it for so long");
      });
  if (there && !in.describing()) out = flap;
}

}  // namespace tocsin::routing
