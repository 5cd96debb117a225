// Only in the self-contained library: in place of Cyrus SASL, which librdkafka asks for GSSAPI (Kerberos) alone. Debian has no
// archives of Kerberos, so the wheel says that it cannot; PLAIN, SCRAM and OAUTHBEARER are librdkafka's own. Signatures: sasl/sasl.h.
namespace {

constexpr int kOk = 0;
constexpr int kNoMechanism = -4;
constexpr const char* kWhy =
    "sasl.mechanism GSSAPI (Kerberos) is not in the wheel of tocsin; PLAIN, SCRAM-SHA-256, "
    "SCRAM-SHA-512 and OAUTHBEARER are. "
    "For Kerberos use the Debian package, or a library that you built, by TOCSIN_LIBRARY";

}  // namespace

extern "C" {

int sasl_client_init(const void*) { return kOk; }  // asked once, whatever the mechanism will be
int sasl_client_new(const char*, const char*, const char*, const char*, const void*, unsigned,
                    void**) {
  return kNoMechanism;
}
int sasl_client_start(void*, const char*, void**, const char**, unsigned*, const char**) {
  return kNoMechanism;
}
int sasl_client_step(void*, const char*, unsigned, void**, const char**, unsigned*) {
  return kNoMechanism;
}
int sasl_listmech(void*, const char*, const char*, const char*, const char*, const char**,
                  unsigned*, int*) {
  return kNoMechanism;
}
int sasl_getprop(void*, int, const void**) { return kNoMechanism; }
const char* sasl_errstring(int, const char*, const char**) { return kWhy; }
const char* sasl_errdetail(void*) { return kWhy; }
void sasl_dispose(void**) {}

}  // extern "C"
