package kernel

import "troupe/actors/identity"

// Identified is who asks.
type Identified struct {
	Caller *identity.Principal // nil for probes
	// Kind and Credential are what the caller authenticated with.
	Kind       identity.Kind
	Credential string
}

// Answer is what is sent.
type Answer struct {
	Status       int      // 0 until the answer has begun
	ContentType  []string // nil is JSON
	CacheControl []string // how long the answer may be kept; nil is not at all
	// VaryAccept, VaryEncoding and VaryLanguage say that the answer depends on the headers Accept,
	// Accept-Encoding and Accept-Language.
	VaryAccept, VaryEncoding, VaryLanguage bool
	// ErrorPage is what a handler puts in place of Route.ErrorPage.
	ErrorPage func(status int)
	// Out is where the answer is built. It is kept from request to request.
	Out []byte
}
