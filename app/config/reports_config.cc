#include "app/config/reports_config.h"

namespace tocsin::app {

void read(config::Reader& in, ReportsConfig& out) {
  in.optional(
      "at_end", out.at_end, config::one_of({"none", "html"}),
      "what to write about each run when it ends: nothing, or the page of `tocsin report --html`");
  in.optional("dir", out.dir, config::not_empty(),
              "folder of these pages on the machine that writes them; created if missing");
  in.optional("url", out.url,
              "address of this folder for readers; messages about a run's issues link the page "
              "there, else they name its path");
}

}  // namespace tocsin::app
