// Package console has the web pages: what waits for the caller, the caller's
// requests and checklists, the page on which one of them is filled in, read and
// moved on, the page of each instance, and the pages of those who run the service.
// It gives out bytes; who may ask for them, and under which path, is the gateway's
// business.
//
//	web/ (TypeScript) ──.ci/console──► dist/ (committed) ──go:embed──► Shell, Asset
//
// The pages are one application. Its shells differ only in the chunks that a page begins with.
// They hold nothing about anybody, and may be given to callers who are not signed
// in: the script in them asks who is signed in, and leads to the sign-in page if
// nobody is. Everything else it shows comes from the documented interfaces, with
// the caller's own session; the pages can do nothing that a caller could not do
// without them.
//
// # What the caller must do
//
//  1. Answer the paths of the pages, {base}/, those below {base}/form-runtime/
//     that end in index.html, {base}/instances/{workflowId}/{instanceId} and
//     {base}/operations, with Shell and their Page, as text/html, with the header
//     Content-Security-Policy: Policy and Cache-Control: ShellCache.
//  2. Answer {base}/assets/{name} with Asset, with the content type that it
//     returns and Cache-Control: AssetCache. An unknown name is 404.
//
// # What it promises
//
// The pages work under Policy, which lets them load and run nothing but their
// own files. Names of assets change with their content, so an asset may be kept
// forever; the shell names the assets of its own version.
//
// All functions may be called concurrently; what Asset returns is shared and
// must not be changed. Nothing is read from disk: the files are in the program.
package console
