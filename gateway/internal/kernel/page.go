package kernel

// SendPage answers with an HTML page.
func (x *Exchange) SendPage(status int, policy []string, page []byte) {
	x.SetPageHeaders(policy)
	x.ContentType = ValueHTML
	x.Out = append(x.Out[:0], page...)
	x.Send(status)
}

// SetPageHeaders sets the security headers of an HTML page.
func (x *Exchange) SetPageHeaders(policy []string) {
	h := x.Writer.Header()
	h["Content-Security-Policy"] = policy
	h["X-Frame-Options"] = valueDeny
	h["Referrer-Policy"] = valueNoReferrer
	h["Cross-Origin-Opener-Policy"] = valueSameOrigin
}

// Values of headers of pages, shared and never changed.
var (
	ValueHTML       = []string{"text/html; charset=utf-8"}
	valueDeny       = []string{"DENY"}
	valueNoReferrer = []string{"no-referrer"}
	valueSameOrigin = []string{"same-origin"}
)
