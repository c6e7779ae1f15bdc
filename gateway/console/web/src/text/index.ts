import { createInstance } from "i18next";
import { initReactI18next } from "react-i18next";
import type { en as operations } from "../operations/text/en";
import { en } from "./en";

// The language of the pages: English or German, by the person's choice or the
// browser's. English is here from the start, German is loaded when it is wanted.

type Widened<T> = { readonly [key in keyof T]: T[key] extends string ? string : Widened<T[key]> };

/** All texts of one language. */
export type Texts = Widened<typeof en>;

export type Language = "en" | "de";
export const languages: readonly { id: Language; name: string }[] = [
  { id: "en", name: "English" },
  { id: "de", name: "Deutsch" },
];

declare module "i18next" {
  interface CustomTypeOptions {
    // The texts of operations come with their pages.
    resources: { translation: typeof en; operations: typeof operations };
  }
}

export const i18n = createInstance();
void i18n.use(initReactI18next).init({
  lng: "en",
  fallbackLng: "en",
  resources: { en: { translation: en } },
  initAsync: false,
  interpolation: { escapeValue: false }, // React writes text, never markup
  react: { useSuspense: false },
});

/** The text of a key, for what is no component. */
export const t = i18n.t;

export const language = (): Language => (i18n.language === "de" ? "de" : "en");

const wishes = () => (typeof navigator === "object" ? [...(navigator.languages ?? [])] : []);

/** The locale of dates and numbers: that of the browser which speaks the language of the pages. */
export function locale(): string {
  return wishes().find((tag) => tag.toLowerCase().split("-")[0] === language()) ?? language();
}

const store = "troupe.language";

/** The language to begin with: chosen before, or the first of the browser's that there is. */
export function wantedLanguage(): Language {
  const known = (tag: string | null | undefined) => languages.find(({ id }) => id === tag?.toLowerCase().split("-")[0])?.id;
  return known(read(store)) ?? wishes().map(known).find((id) => id !== undefined) ?? "en";
}

export async function speak(id: Language): Promise<void> {
  if (id === "de" && !i18n.hasResourceBundle("de", "translation")) {
    i18n.addResourceBundle("de", "translation", (await import("./de")).de);
  }
  await i18n.changeLanguage(id);
  if (typeof document === "object") {
    document.documentElement.lang = id;
  }
}

export async function chooseLanguage(id: Language): Promise<void> {
  write(store, id);
  await speak(id);
}

// NB: a browser may refuse its store; the choice then lasts as long as the page.
export function read(name: string): string | null {
  try {
    return window.localStorage.getItem(name);
  } catch {
    return null;
  }
}

export function write(name: string, value: string): void {
  try {
    window.localStorage.setItem(name, value);
  } catch {
    // Nothing depends on it.
  }
}
