#include "app/api/schema_texts.h"

namespace tocsin::app {
namespace {

// Bodies of Alertmanager's API, version 2.
constexpr std::string_view kAlertmanagerSchemas =
    R"json({"AlertmanagerStatus":{"type":"object","properties":{"cluster":{"type":"object"},
   "config":{"type":"object"},"uptime":{"type":"string","format":"date-time"},
   "versionInfo":{"type":"object"}},"required":["cluster","config","uptime","versionInfo"],
   "additionalProperties":false},
 "Receivers":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"}},
   "required":["name"],"additionalProperties":false}},
 "Matcher":{"type":"object","properties":{"name":{"type":"string"},"value":{"type":"string"},
   "isRegex":{"type":"boolean"},"isEqual":{"type":"boolean"}},"required":["name","value",
   "isRegex"],"additionalProperties":false},
 "GettableAlert":{"type":"object","properties":{"annotations":{"type":"object",
   "additionalProperties":{"type":"string"}},"endsAt":{"type":"string","format":"date-time"},
   "fingerprint":{"type":"string"},"receivers":{"$ref":"#/components/schemas/Receivers"},
   "startsAt":{"type":"string","format":"date-time"},"status":{"type":"object",
   "properties":{"inhibitedBy":{"type":"array","items":{"type":"string"}},
   "mutedBy":{"type":"array","items":{"type":"string"}},"silencedBy":{"type":"array",
   "items":{"type":"string"}},"state":{"type":"string","enum":["active","suppressed",
   "unprocessed"]}},"required":["inhibitedBy","mutedBy","silencedBy","state"],
   "additionalProperties":false},"updatedAt":{"type":"string","format":"date-time"},
   "generatorURL":{"type":"string"},"labels":{"type":"object",
   "additionalProperties":{"type":"string"}}},"required":["annotations","endsAt","fingerprint",
   "receivers","startsAt","status","updatedAt","generatorURL","labels"],
   "additionalProperties":false},
 "GettableAlerts":{"type":"array","items":{"$ref":"#/components/schemas/GettableAlert"}},
 "AlertGroups":{"type":"array","items":{"type":"object","properties":{"alerts":{"type":"array",
   "items":{"$ref":"#/components/schemas/GettableAlert"}},"labels":{"type":"object",
   "additionalProperties":{"type":"string"}},"receiver":{"type":"object",
   "properties":{"name":{"type":"string"}},"required":["name"],"additionalProperties":false}},
   "required":["alerts","labels","receiver"],"additionalProperties":false}},
 "PostableAlerts":{"type":"array","items":{"type":"object",
   "properties":{"labels":{"type":"object","additionalProperties":{"type":"string"}},
   "annotations":{"type":"object","additionalProperties":{"type":"string"}},
   "startsAt":{"type":"string","format":"date-time"},"endsAt":{"type":"string",
   "format":"date-time"},"generatorURL":{"type":"string"}},"required":["labels"]}},
 "GettableSilence":{"type":"object","properties":{"id":{"type":"string"},
   "status":{"type":"object","properties":{"state":{"type":"string","enum":["pending","active",
   "expired"]}},"required":["state"],"additionalProperties":false},"updatedAt":{"type":"string",
   "format":"date-time"},"comment":{"type":"string"},"createdBy":{"type":"string"},
   "endsAt":{"type":"string","format":"date-time"},"matchers":{"type":"array",
   "items":{"$ref":"#/components/schemas/Matcher"}},"startsAt":{"type":"string",
   "format":"date-time"}},"required":["id","status","updatedAt","comment","createdBy","endsAt",
   "matchers","startsAt"]},
 "GettableSilences":{"type":"array","items":{"$ref":"#/components/schemas/GettableSilence"}},
 "PostableSilence":{"type":"object","properties":{"id":{"type":"string"},
   "matchers":{"type":"array","items":{"$ref":"#/components/schemas/Matcher"}},
   "startsAt":{"type":"string","format":"date-time"},"endsAt":{"type":"string",
   "format":"date-time"},"createdBy":{"type":"string"},"comment":{"type":"string"}},
   "required":["matchers","startsAt","endsAt","comment"]},
 "SilenceID":{"type":"object","properties":{"silenceID":{"type":"string"}},
   "required":["silenceID"],"additionalProperties":false}})json";

}  // namespace

std::string_view alertmanager_schemas() noexcept { return kAlertmanagerSchemas; }

}  // namespace tocsin::app
