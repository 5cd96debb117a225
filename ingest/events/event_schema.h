// What stands in the data of our events, from the declarations that read and write them: for
// docs/events.md, `tocsin schema events`, and programs that check what they produce.
#pragma once

#include <string>

namespace tocsin::ingest {

/// JSON Schema (draft-07): one definition per event type, named as in ce_dataschema ("issue.v1").
std::string event_schemas();
/// Per event a heading "## issue" and the table of its fields.
std::string event_tables();

}  // namespace tocsin::ingest
