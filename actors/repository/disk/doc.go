// Package disk is a folder of the disk as the place where the files of a
// repository are. It is the only code of the repository that touches files.
//
//	path ──canonical?──► os.Root ──name by name, no links──► fstat: a regular file
//
// What is promised: nothing outside the folder is read, and nothing through a
// link, also while somebody swaps files, folders and links; nothing that is no
// regular file is opened, so that no pipe or device can keep a request waiting; a
// file with several names is read only when it belongs to the owner of the
// folder, because the other names may lie outside.
//
// Changes are noticed through fsnotify, folder by folder. Where that ends (limits
// of the system, network file systems) folders say that they are not watched, and
// whoever asks has to look again.
package disk
