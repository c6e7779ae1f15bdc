import { read, write } from "../text";

// Light or dark: as the system has it, or as the person chose in this browser.

export type Looks = "system" | "light" | "dark";

const store = "troupe.looks";

export const chosenLooks = (): Looks => {
  const chosen = read(store);
  return chosen === "light" || chosen === "dark" ? chosen : "system";
};

export function applyLooks(): void {
  const looks = chosenLooks();
  document.documentElement.style.colorScheme = looks === "system" ? "light dark" : looks;
}

export function chooseLooks(looks: Looks): void {
  write(store, looks);
  applyLooks();
}
