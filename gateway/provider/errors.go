package provider

import (
	"troupe/actors/failure"
)

var (
	// ErrFlow is what Finish answers when the request does not belong to a
	// sign-in that this browser has begun, or comes too late.
	ErrFlow = failure.Refuse(failure.ErrInvalid, "the sign-in was not started in this browser, or has expired")
	// ErrRefused is what Finish answers when the provider has refused the
	// sign-in, or its answer is not valid.
	ErrRefused = failure.Errorf(failure.ErrUnauthorized, "not confirmed by the identity provider")
	// ErrBusy is what Begin and Finish answer when too many sign-ins wait for the
	// provider.
	ErrBusy = failure.Errorf(failure.ErrBusy, "too many sign-ins wait for the identity provider")
	// ErrUnavailable is what Begin and Finish answer when the provider cannot be
	// reached, or does not accept our client id. The log has the cause.
	ErrUnavailable = failure.Errorf(failure.ErrUnavailable, "the identity provider is not available")
)
