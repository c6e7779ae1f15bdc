package kernel

// Services is what the kernel asks. It does not change it.
type Services struct {
	Credentials Credentials
	// Users says who there is. Nil: users have no names but their login names.
	Users Users
}
