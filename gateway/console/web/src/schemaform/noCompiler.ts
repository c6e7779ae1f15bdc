// Stands in for the compiling validator that a test helper inside the form
// library imports. Nothing here uses that helper.
export default undefined;
