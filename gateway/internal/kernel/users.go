package kernel

import "troupe/actors/identity"

// Users says who there is.
type Users interface {
	// Directory is that of now.
	Directory() *identity.Directory
}
