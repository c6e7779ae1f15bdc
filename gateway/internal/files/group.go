// Package files has the routes of groups C and D: parameters of templates, and lists of files.
package files

// Group answers the routes. Its fields are set before the kernel is opened.
type Group struct {
	// Repository lists files. Nil: there are none, and its route answers 404.
	Repository Repository
	// Templates lists the parameters that templates declare. Nil: there are none.
	Templates Templates
}
