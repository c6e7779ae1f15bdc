package kernel

import "net/http"

// Values of headers. They are shared by all answers and never changed.
var (
	ValueJSON         = []string{"application/json"}
	valueNoStore      = []string{"no-store"}
	valueVary         = []string{"Cookie, Authorization, Authentication"}
	valueVaryAccept   = []string{"Cookie, Authorization, Authentication, Accept"}
	valueVaryEncoding = []string{"Cookie, Authorization, Authentication, Accept-Encoding"}
	valueVaryBoth     = []string{"Cookie, Authorization, Authentication, Accept, Accept-Encoding"}
	valueNosniff      = []string{"nosniff"}
	ValueClose        = []string{"close"}
	valueChallenge    = []string{`svc.token realm="troupe", Bearer realm="troupe"`}
	valueMinimal      = []string{"return=minimal"}
	ValueRepresented  = []string{"return=representation"}
	ValueLines        = []string{"application/x-ndjson"}
	lengthSetBytesMin = 2048 // below, net/http sets Content-Length without an allocation
)

// IsSafe reports whether a method changes nothing (RFC 9110, 9.2.1), so that its
// answer may be refused after the work is done.
func IsSafe(method string) bool { return method == http.MethodGet || method == http.MethodHead }
