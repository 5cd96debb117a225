#include "app/config/reports_config.h"

namespace tocsin::app {

void read(config::Reader& in, ReportsConfig& out) {
  in.optional("at_end", out.at_end, config::one_of({"none", "html"}),
              "what is written of each run when it has ended: nothing, or the page of "
              "`tocsin report --html`");
  in.optional("dir", out.dir, config::not_empty(),
              "folder of these pages, on the machine that writes them; made where it is not there");
  in.optional(
      "url", out.url,
      "address under which this folder can be read, if it can: messages about a run's issues "
      "then name the page by it, else by its path");
}

}  // namespace tocsin::app
