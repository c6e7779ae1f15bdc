/** German for cronstrue; it registers itself. */
declare module "cronstrue/locales/de";
