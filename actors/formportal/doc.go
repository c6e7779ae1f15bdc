// Package formportal knows the templates of forms and checklists: what a user
// can fill in, who may do so, and what the data must look like.
//
//	forms/*.yaml, checklists/*.yaml ──ParseTemplate──► Template
//	                                                      │ Templates.Publish
//	                                                      ▼
//	                            accepted set: in memory, and in the store
package formportal
