package gateway_test

// flows are the files of the home that the interface is tested with.
func flows() map[string]string { return filesOf("flows") }
