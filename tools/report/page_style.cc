// The page's style sheet: two color schemes, one accent, narrow screens and paper.
#include "tools/report/sections.h"

namespace cairn::tools {

const char kPageStyle[] = R"css(
:root{--page:#fcfbf8;--ink:#1c1f24;--soft:#555c67;--rule:#e4e1da;--bar:#b9bdc4;--faint:#d8dade;
--accent:#b8440c;--accent-ink:#fff;--accent-text:#a63c08;--cell0:#d9dce1;--cell1:#e6e8ec;--cell2:#f0f1f4}
@media (prefers-color-scheme:dark){:root{--page:#15171a;--ink:#e9e7e2;--soft:#a2a8b2;--rule:#2c3036;
--bar:#5b626d;--faint:#3a3f47;--accent:#f08a4b;--accent-ink:#15171a;--accent-text:#f59b62;
--cell0:#343a42;--cell1:#2b3038;--cell2:#22262c}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;background:var(--page)}
body{margin:0;color:var(--ink);background:var(--page);font:16px/1.55 "Inter",-apple-system,
BlinkMacSystemFont,"Segoe UI",Roboto,"Helvetica Neue","Noto Sans","Liberation Sans",Arial,sans-serif;
font-variant-numeric:tabular-nums lining-nums;overflow-wrap:anywhere}
main{max-width:1000px;margin:0 auto;padding:56px 24px 40px}
h1,h2,.finding{font-family:"Iowan Old Style","Palatino Linotype",Palatino,Charter,"Bitstream Charter","P052","URW Palladio L",
"Source Serif 4",Georgia,"Noto Serif","Liberation Serif",serif}
h1{font-size:clamp(34px,7vw,56px);line-height:1.08;margin:0 0 14px;font-weight:600;
letter-spacing:-.015em}
h2{font-size:27px;line-height:1.2;margin:0 0 4px;font-weight:600;letter-spacing:-.005em}
h3{font-size:15px;margin:36px 0 4px;font-weight:600}
p{margin:0 0 12px}
.kicker{color:var(--accent-text);font-size:13px;font-weight:600;letter-spacing:.09em;
text-transform:uppercase;margin-bottom:10px}
.lede{font-size:19px;line-height:1.5;max-width:44em;color:var(--soft);margin-bottom:30px}
.lede b{color:var(--ink);font-weight:600}
.finding{font-size:20px;line-height:1.4;color:var(--soft);margin-bottom:22px;max-width:40em}
.finding b{color:var(--ink)}
code,.key{font-family:ui-monospace,"SF Mono","Cascadia Mono",Menlo,Consolas,"DejaVu Sans Mono",
"Liberation Mono",monospace;font-size:.88em}
.finding .key{color:var(--ink)}
section{border-top:1px solid var(--rule);padding-top:26px;margin-top:52px}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(130px,1fr));gap:18px 24px;margin:0}
.tiles div{border-top:2px solid var(--ink);padding-top:8px}
.tiles div:last-child{border-color:var(--accent)}
.tiles dt,.pair dt{color:var(--soft);font-size:14px}
.tiles dd{margin:0;font-size:27px;line-height:1.2;font-weight:600;letter-spacing:-.02em;
white-space:nowrap}
.tiles div{display:flex;flex-direction:column-reverse;justify-content:flex-end}
.bars{display:grid;grid-template-columns:minmax(12em,19em) 1fr auto auto;gap:9px 16px;
align-items:center;font-size:15px}
.bars .row,.bars .group{display:contents}
.bars .group span{color:var(--soft);font-size:13px;padding-top:8px}
.bars .group span:first-child{grid-column:1/3}
.bars .group span:not(:first-child){text-align:right;font-weight:600}
.bars small{display:block;color:var(--soft);font-size:13px;line-height:1.35}
.num{text-align:right;white-space:nowrap}
.soft{color:var(--soft)}
.track i{display:block;height:18px;min-width:1px;background:var(--bar)}
.track i.accent{background:var(--accent)}
.track i.hollow{background:none;border:1.5px solid var(--bar)}
.bars.top{grid-template-columns:minmax(5em,11em) 1fr auto;gap:6px 12px;font-size:14px}
.bars.top .track i{height:13px}
figure{margin:0 0 10px;min-width:0}
figcaption{font-size:15px;font-weight:600;margin:14px 0 10px}
figcaption small{display:block;font-weight:400;color:var(--soft);font-size:13px}
figcaption small b{color:var(--accent-text);font-weight:600}
.grid{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(280px,100%),1fr));gap:20px 36px;
margin-top:8px}
.only{color:var(--soft);font-size:15px}.only b{color:var(--ink);font-size:27px;letter-spacing:-.02em;margin-right:4px}
.note{color:var(--soft);font-size:14px;max-width:46em;margin:8px 0 10px}
.note b{font-weight:600;color:var(--ink)}
.note .mark{color:var(--accent-text)}
.warning{border-left:3px solid var(--accent);padding:4px 0 4px 14px;max-width:46em}
svg{display:block;width:100%;height:auto;overflow:visible}
.narrow{display:none}
svg text{font-size:12px;fill:var(--soft);font-family:inherit}
svg .value{fill:var(--ink)}
svg .strong{font-weight:600}
svg .axisname{font-size:13px}
svg .bar{fill:var(--bar)}
svg .accent{fill:var(--accent)}
svg .axis{stroke:var(--soft);stroke-width:1}
svg .grid{stroke:var(--rule);stroke-width:1}
svg .median{stroke:var(--accent);stroke-width:1.5}
svg path{fill:none;stroke-linejoin:round;stroke-linecap:round}
svg .other{stroke:var(--bar);stroke-width:1.3}
svg .faint{stroke:var(--faint)}
svg .dot{fill:var(--bar)}
svg .this{stroke:var(--ink);stroke-width:1.6}
svg .thisdot{fill:var(--ink)}
svg .taken{stroke:var(--accent);stroke-width:2.2}
svg .takendot{fill:var(--accent);stroke:var(--page);stroke-width:1.5}
svg .predicted{stroke:var(--soft);stroke-width:1.4;stroke-dasharray:4 4}
svg .predicteddot{fill:var(--page);stroke:var(--soft);stroke-width:1.3}
svg .cell{fill:var(--cell0)}
svg .level1{fill:var(--cell1)}
svg .level2{fill:var(--cell2)}
svg .most{fill:var(--accent)}
svg .cellname{fill:var(--ink);font-weight:600;font-family:ui-monospace,"SF Mono",Menlo,Consolas,
"DejaVu Sans Mono",monospace}
svg .most+.cellname,svg .most+.cellname+.cellshare{fill:var(--accent-ink)}
svg rect:hover,svg circle:hover{opacity:.75}
.stack{display:flex;height:26px;gap:2px;margin:20px 0 10px}
.stack i,.labels i{background:var(--bar)}
.stack i.accent,.labels i.accent{background:var(--accent)}
.stack i.gone,.labels i.gone{background:repeating-linear-gradient(45deg,var(--bar) 0 2px,transparent 2px 6px)}
.labels{list-style:none;display:flex;flex-wrap:wrap;gap:4px 24px;margin:0 0 14px;padding:0;font-size:14px;
color:var(--soft)}
.labels b{color:var(--ink)}
.labels i{display:inline-block;width:11px;height:11px;margin-right:7px}
.pair{display:flex;flex-wrap:wrap;gap:10px 48px;margin:12px 0}
.pair dd{margin:0;font-size:21px;font-weight:600}
details{margin:6px 0 18px;font-size:14px}
summary{cursor:pointer;color:var(--soft);padding:4px 0}
summary:focus-visible{outline:2px solid var(--accent);outline-offset:3px}
.scroll{overflow-x:auto;max-height:26em;overflow-y:auto}
table{border-collapse:collapse;font-size:14px}
th,td{padding:4px 18px 4px 0;text-align:right;font-weight:400;border-bottom:1px solid var(--rule);
vertical-align:top}
th:first-child{text-align:left}
thead th{color:var(--soft);font-size:13px;position:sticky;top:0;background:var(--page)}
.facts{width:100%;font-size:15px}
.facts td{text-align:left;padding-right:0}
.facts th{color:var(--soft);width:12em}
footer{color:var(--soft);font-size:14px;margin-top:44px}
@media (max-width:760px){main{padding:32px 18px}.wide{display:none}.narrow{display:block}
.lede{font-size:17px}.finding{font-size:18px}section{margin-top:40px}
.tiles{grid-template-columns:repeat(2,1fr)}.tiles dd{font-size:24px}
.bars:not(.top){grid-template-columns:1fr auto auto;gap:3px 14px}
.bars:not(.top) .name{grid-column:1/4;padding-top:9px}
.bars:not(.top) .group span:first-child{grid-column:1/2}
.facts th{width:7.5em}.narrow svg{max-width:520px}}
@media print{:root{--page:#fff;--ink:#000;--soft:#444;--rule:#ccc}main{max-width:none;padding:0}
section,figure{break-inside:avoid}h2{break-after:avoid}#keys,#speed{break-inside:auto}
*{-webkit-print-color-adjust:exact;print-color-adjust:exact}details{display:none}}
)css";

}  // namespace cairn::tools
