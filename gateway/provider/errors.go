package provider

import "errors"

var (
	// ErrFlow is what Finish answers when the request does not belong to a
	// sign-in that this browser has begun, or comes too late.
	ErrFlow = errors.New("no sign-in of this browser")
	// ErrRefused is what Finish answers when the provider has not recognised
	// anybody, or what it says cannot be believed.
	ErrRefused = errors.New("not confirmed by the identity provider")
	// ErrBusy is what Finish answers when too many ask the provider at a time.
	ErrBusy = errors.New("too many ask the identity provider")
	// ErrUnavailable is what Begin and Finish answer when the provider cannot be
	// asked, or does not take us for its client. The log has the cause.
	ErrUnavailable = errors.New("the identity provider is not available")
)
