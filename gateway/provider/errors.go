package provider

import "errors"

var (
	// ErrFlow is what Finish answers when the request does not belong to a
	// sign-in that this browser has begun, or comes too late.
	ErrFlow = errors.New("sign-in not begun in this browser, or expired")
	// ErrRefused is what Finish answers when the provider has refused the
	// sign-in, or its answer is not valid.
	ErrRefused = errors.New("not confirmed by the identity provider")
	// ErrBusy is what Begin and Finish answer when too many sign-ins wait for the
	// provider.
	ErrBusy = errors.New("too many sign-ins wait for the identity provider")
	// ErrUnavailable is what Begin and Finish answer when the provider cannot be
	// reached, or does not accept our client id. The log has the cause.
	ErrUnavailable = errors.New("the identity provider is not available")
)
