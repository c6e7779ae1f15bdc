// Has Mermaid's own parser and Graphviz read the files that are named. Ends with 1 when one of them refuses a file.
// Graphviz draws the .dot files after --draw too; the others it reads and writes again: what it says of a text is
// then about the text, while its routing of lines gives up on some graphs of many states, however they are written.
import { readFileSync } from 'node:fs'
import { Graphviz } from '@hpcc-js/wasm-graphviz'
import { JSDOM } from 'jsdom'

const page = new JSDOM('<!doctype html><body></body>')
globalThis.window = page.window
globalThis.document = page.window.document

const mermaid = (await import('mermaid')).default // looks for a document when it is loaded
const graphviz = await Graphviz.load()

let refused = 0
let draw = false
for (const file of process.argv.slice(2)) {
  if (file === '--draw') {
    draw = true
    continue
  }
  const text = readFileSync(file, 'utf8')
  try {
    if (file.endsWith('.mmd')) {
      const { diagramType } = await mermaid.parse(text)
      if (diagramType !== 'stateDiagram') throw new Error(`Mermaid reads it as ${diagramType}`)
    } else if (draw && !graphviz.dot(text, 'svg').includes('</svg>')) {
      throw new Error('Graphviz draws nothing')
    } else if (!draw && !graphviz.unflatten(text).startsWith('digraph')) {
      throw new Error('Graphviz reads no graph')
    }
  } catch (e) {
    refused++
    console.error(`${file}: ${e.message}`)
  }
}
process.exit(refused > 0 ? 1 : 0)
